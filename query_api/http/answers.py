"""An HTTP reply as a value, which the fast path and Flask both send, and the headers that describe an answer.

These are the node, its role, the version, the record's position and the answer's age.
"""

from collections.abc import Iterator
from contextlib import ExitStack

from flask import Response

from include.nodes.peers import AS_OF_HEADER, LAG_HEADER, SERVED_HEADER, VERSION_HEADER, ServedOffset
from include.position import position_text
from query_api.cluster.node_state import PartitionState
from query_api.lookup.lookup_results import AnswerAge, LocalAnswer
from query_api.lookup.routing import Role

CONTENT_TYPE = ("Content-Type", "application/json")
CACHE_CONTROL = ("Cache-Control", "no-store")
# An enumeration computes `value` at each access.
ROLE_TEXTS = {role: role.value for role in Role}
POSITION_HEADER = "Foldlake-Position"
NODE_HEADER = "Foldlake-Node"


def headers_of(answer: LocalAnswer, joined: AnswerAge | None = None) -> list[tuple[str, str]]:
    """Return the response headers for an answer from this node's store; `joined` is the age of a record that is joined with it."""
    partition = answer.partition
    return [
        CONTENT_TYPE,
        CACHE_CONTROL,
        (VERSION_HEADER, str(answer.location.version)),
        (POSITION_HEADER, position_text(answer.raw)),
        (NODE_HEADER, answer.location.state.node),
        ("Foldlake-Role", ROLE_TEXTS[answer.role]),
        *(
            age_headers(partition)
            if joined is None
            else AnswerAge.oldest((AnswerAge.of_partition(partition), joined)).headers()
        ),
    ]


def age_headers(partition: PartitionState) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the headers that state how old an answer from this partition can be."""
    return (AS_OF_HEADER, partition.as_of_text), (LAG_HEADER, str(partition.lag_ms()))


def combined_headers(node: str, version: int, age: AnswerAge) -> dict[str, str]:
    """Return the response headers for an answer that this node has made of records from several partitions or nodes."""
    return dict([CACHE_CONTROL, (VERSION_HEADER, str(version)), (NODE_HEADER, node), *age.headers()])


def served_header(answer: LocalAnswer) -> tuple[str, str]:
    """Return the header that tells another node which record of the changelog it is answered with."""
    return SERVED_HEADER, ServedOffset(answer.location.version, answer.record.offset + 1).text


def proxied_headers(headers: dict[str, str]) -> list[tuple[str, str]]:
    """Return the headers of another node's response that are sent on to the client."""
    internal = SERVED_HEADER.lower()
    wanted = ("content-type", "cache-control", "retry-after", "etag")
    return [
        (k.title(), v)
        for k, v in headers.items()
        if k in wanted or (k.startswith("foldlake-") and k != internal)
    ]


PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Reply = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""


def flask_response(reply: Reply) -> Response:
    """Convert a reply to a Flask response."""
    status, headers, body = reply
    return Response(body, status=status, headers=headers)


def metrics_response(text: bytes) -> Response:
    """Return a page of metrics in Prometheus' text format."""
    return Response(text, content_type=PROMETHEUS_TYPE, headers=dict([CACHE_CONTROL]))


class StreamBody:
    """The body of a response. `close` returns what the stream uses, also if nothing was sent."""

    def __init__(self, frames: Iterator[bytes], used: ExitStack) -> None:
        self._frames = frames
        self._used = used

    def __iter__(self) -> Iterator[bytes]:
        """Return the frames."""
        return self._frames

    def close(self) -> None:
        """End the stream."""
        self._used.close()
