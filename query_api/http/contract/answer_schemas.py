"""JSON Schemas of the answers that do not depend on read models."""

from typing import Any

from query_api.changes.key_change import ChangeKind
from query_api.history.samples import HistorySample
from query_api.http.contract.json_schema import Schema, nullable, object_schema
from query_api.http.contract.typed_schema import columns_schema, typed_schema
from query_api.status.sections import HistoryEntry, section_types

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}


def status() -> Schema:
    """Return the schema of the status."""
    sections = {name: _section(data) for name, data in section_types().items()}
    return object_schema(
        {
            "node": TEXT,
            "url": TEXT,
            "at": {"type": "string", "format": "date-time"},
            "sections": object_schema(sections, required=()),
        }
    )


def _section(data: Any) -> Schema:  # noqa: ANN401 - a type, or a form of `typing`
    members = {
        "asOf": MAYBE_TEXT,
        "ageS": {"type": ["number", "null"]},
        "error": MAYBE_TEXT,
        "data": nullable(_history() if data is HistoryEntry else typed_schema(data)),
    }
    return object_schema(members)


def _history() -> Schema:
    found = typed_schema(HistoryEntry)
    found["properties"]["models"]["additionalProperties"] = columns_schema(HistorySample)
    return found


def problem() -> Schema:
    """Return the schema of a problem."""
    error = object_schema({"field": TEXT, "error": TEXT})
    members: dict[str, Schema] = {
        "type": {"type": "string", "format": "uri", "description": "The kind of problem, for programs."},
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "This occurrence, for people."},
        "page": {
            "type": "string",
            "format": "uri-reference",
            "description": "Page about the kind of problem.",
        },
        "requestId": {
            "type": "string",
            "description": "Of the request, also in logs: the header X-Request-Id.",
        },
        "advice": TEXT,
        "reasons": {"type": "array", "items": TEXT},
        "errors": {
            "type": "array",
            "items": error,
            "description": "Of a command: every field that is not valid.",
        },
    }
    return object_schema(members, required=("type", "title", "status", "detail", "page"))


def problem_kind() -> Schema:
    """Return the schema of a kind of problem."""
    return object_schema(
        {
            "slug": TEXT,
            "type": TEXT,
            "statuses": {"type": "array", "items": {"type": "integer"}},
            "meaning": TEXT,
            "remedy": TEXT,
            "mayRetry": {"type": "boolean"},
        }
    )


def event() -> Schema:
    """Return the schema of an event of a stream of changes."""
    kinds = [*ChangeKind, "snapshot", "present", "live", "reset", "closed"]
    return object_schema(
        {
            "event": {"type": "string", "enum": list(map(str, kinds))},
            "data": {"type": "string", "contentMediaType": "application/json"},
            "id": {"type": "string", "description": "The position after the event, for `after`."},
        },
        required=("event", "data"),
    )


def read_model() -> Schema:
    """Return the schema of a read model with its versions."""
    version = object_schema(
        {
            "version": COUNT,
            "stage": TEXT,
            "sourceTopic": TEXT,
            "changelogTopic": TEXT,
            "recordsHeldHere": COUNT,
        }
    )
    return object_schema(
        {
            "name": TEXT,
            "sourceTopic": TEXT,
            "partitions": COUNT,
            "revision": COUNT,
            "live": MAYBE_COUNT,
            "versions": {"type": "array", "items": version},
        }
    )
