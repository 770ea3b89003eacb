"""The response headers that describe an answer: the node, its role, the version, the record's position and the answer's age."""

from include.nodes.peers import LAG_HEADER, SERVED_HEADER, ServedOffset
from include.position import position_text
from query_api.cluster.node_state import PartitionState
from query_api.lookup.key_location import Role
from query_api.lookup.local_results import LocalAnswer

CONTENT_TYPE = ("Content-Type", "application/json")
CACHE_CONTROL = ("Cache-Control", "no-store")
# An enumeration computes `value` at each access.
ROLE_TEXTS = {role: role.value for role in Role}
POSITION_HEADER = "Foldlake-Position"
# The answer contains everything that the changelog contained at this time.
AS_OF_HEADER = "Foldlake-As-Of"


def headers_of(answer: LocalAnswer) -> list[tuple[str, str]]:
    """Return the response headers for an answer from this node's store."""
    return [
        CONTENT_TYPE,
        CACHE_CONTROL,
        ("Foldlake-Version", str(answer.place.version)),
        (POSITION_HEADER, position_text(answer.raw)),
        ("Foldlake-Node", answer.place.state.node),
        ("Foldlake-Role", ROLE_TEXTS[answer.role]),
        *age_headers(answer.partition),
    ]


def age_headers(partition: PartitionState) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the headers that state how old an answer from this partition can be."""
    return (AS_OF_HEADER, partition.as_of_text), (LAG_HEADER, str(partition.lag_ms()))


def served_header(answer: LocalAnswer) -> tuple[str, str]:
    """Return the header that tells another node which record of the changelog it is answered with."""
    return SERVED_HEADER, ServedOffset(answer.place.version, answer.record.offset + 1).text


def proxied_headers(headers: dict[str, str]) -> list[tuple[str, str]]:
    """Return the headers of another node's response that are sent on to the client."""
    internal = SERVED_HEADER.lower()
    wanted = ("content-type", "cache-control", "retry-after")
    return [
        (k.title(), v)
        for k, v in headers.items()
        if k in wanted or (k.startswith("foldlake-") and k != internal)
    ]
