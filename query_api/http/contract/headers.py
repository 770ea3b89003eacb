"""The response headers of the API, for the OpenAPI document."""

from collections.abc import Iterable, Mapping
from typing import Any

from include.nodes.peers import AS_OF_HEADER, LAG_HEADER, REASON_HEADER, VERSION_HEADER
from query_api.http.answers import NODE_HEADER, POSITION_HEADER
from query_api.http.delivery.conditional import ETAG
from query_api.lookup.lookup_results import FailureReason

ROLE_HEADER = "Foldlake-Role"
RETRY_AFTER = "Retry-After"
LOCATION = "Location"
OPTIONAL = "-optional"
TEXT: Mapping[str, Any] = {"type": "string"}
COMPONENTS: Mapping[str, Mapping[str, Any]] = {
    VERSION_HEADER: {
        "description": "Version of the read model that answered.",
        "schema": {"type": "integer", "minimum": 1},
        "example": 1,
    },
    POSITION_HEADER: {
        "description": "The newest source event that the answer contains, and the number of events in it.",
        "schema": TEXT,
        "example": "partition=3, offset=1, event_count=1",
    },
    NODE_HEADER: {
        "description": "The node whose store had the record, or that made the answer.",
        "schema": TEXT,
    },
    ROLE_HEADER: {
        "description": "Role of the node for the partition.",
        "schema": {"type": "string", "enum": ["owner", "standby"]},
    },
    AS_OF_HEADER: {
        "description": "The answer contains everything that the changelog contained at this time.",
        "schema": {"type": "string", "format": "date-time"},
    },
    LAG_HEADER: {
        "description": "Milliseconds since `Foldlake-As-Of`, by the clock of the node that answered.",
        "schema": {"type": "integer", "minimum": 0},
    },
    REASON_HEADER: {
        "description": "Why a lookup failed: the problem's slug.",
        "schema": {"type": "string", "enum": [reason.slug for reason in FailureReason]},
    },
    RETRY_AFTER: {
        "description": "Seconds after which the request can succeed.",
        "schema": {"type": "integer", "minimum": 0},
    },
    ETAG: {
        "description": "Identifies the answer: version, position and content.",
        "schema": TEXT,
    },
    LOCATION: {
        "description": "The record of the event's key: it contains the event once that is folded.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
}
AGE = (AS_OF_HEADER, LAG_HEADER)
OF_LOOKUP = (VERSION_HEADER, POSITION_HEADER, NODE_HEADER, ROLE_HEADER, *AGE, ETAG)
OF_SEVERAL = (VERSION_HEADER, NODE_HEADER, *AGE)
OF_STREAM = (VERSION_HEADER, NODE_HEADER)


OF_PROBLEM = (REASON_HEADER, NODE_HEADER, *AGE)


def header_objects(names: Iterable[str], *, is_required: bool = True) -> dict[str, Any]:
    """Return the headers of a response by name."""
    suffix = "" if is_required else OPTIONAL
    return {name: {"$ref": f"#/components/headers/{name}{suffix}"} for name in names}


def components() -> dict[str, Any]:
    """Return the headers that responses always have, and, under another name, those that some of them have."""
    always = (*OF_LOOKUP, LOCATION)
    optional = (*OF_PROBLEM, RETRY_AFTER)
    return {name: {"required": True, **COMPONENTS[name]} for name in always} | {
        name + OPTIONAL: dict(COMPONENTS[name]) for name in optional
    }


PROBLEM_HEADERS = header_objects(OF_PROBLEM, is_required=False)
