"""The response headers that describe an answer: the node, its role, the version and the record's position."""

from include.position import position_text
from query_api.lookup.local_lookup import LocalAnswer

CONTENT_TYPE = "application/json"
POSITION_HEADER = "Foldlake-Position"


def headers_of(answer: LocalAnswer) -> list[tuple[str, str]]:
    """Return the response headers for an answer from this node's store."""
    return [
        ("Content-Type", CONTENT_TYPE),
        ("Cache-Control", "no-store"),
        ("Foldlake-Version", str(answer.place.version)),
        (POSITION_HEADER, position_text(answer.raw)),
        ("Foldlake-Node", answer.place.state.node),
        ("Foldlake-Role", answer.role.value),
    ]


def proxied_headers(headers: dict[str, str]) -> list[tuple[str, str]]:
    """Return the headers of another node's response that are sent on to the client."""
    wanted = ("content-type", "cache-control", "retry-after")
    return [(k.title(), v) for k, v in headers.items() if k in wanted or k.startswith("foldlake-")]
