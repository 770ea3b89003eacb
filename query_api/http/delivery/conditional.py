"""Conditional requests: a client that has an answer already gets 304 with the current headers, and no body."""

from http import HTTPStatus
from zlib import crc32

from query_api.http.answers import Reply

ETAG = "ETag"
LEFT_OUT = frozenset({"content-type", "content-length"})
# More than a client has answers of one path.
MAX_CHARACTERS = 2000


def entity_tag(version: int, position: tuple[int, int, int], body: bytes) -> tuple[str, str]:
    """Return the header that identifies an answer.

    It has the version, and partition, offset and event count of the record. The checksum of the body also changes with a joined record, and
    with the fields that a lookup returns.
    """
    partition, offset, event_count = position
    return ETAG, f'"{version}-{partition}.{offset}.{event_count}-{crc32(body):08x}"'


def for_condition(reply: Reply, if_none_match: str | None) -> Reply:
    """Return the reply, or 304 if the request's header If-None-Match lists its tag."""
    status, headers, _ = reply
    if if_none_match is None or status != HTTPStatus.OK:
        return reply
    tag = next((value for name, value in headers if name.lower() == "etag"), None)
    if tag is None or len(if_none_match) > MAX_CHARACTERS or tag not in if_none_match:
        return reply
    kept = [(name, value) for name, value in headers if name.lower() not in LEFT_OUT]
    return HTTPStatus.NOT_MODIFIED.value, kept, b""
