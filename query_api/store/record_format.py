"""The binary format of a stored record: checksum, event count, changelog offset, then the changelog value unchanged."""

import struct
from zlib import crc32

from query_api.store.base import StoredRecord

_CHECKSUM = struct.Struct(">I")
_POSITION = struct.Struct(">qq")
_BODY_START = _CHECKSUM.size
HEADER_BYTES = _CHECKSUM.size + _POSITION.size


class BadRecordError(ValueError):
    """The bytes are not a record, or not the record that was written for this key."""


def pack(key: bytes, event_count: int, offset: int, value: bytes) -> bytes:
    """Serialize a record; the checksum also covers the key."""
    body = _POSITION.pack(event_count, offset) + value
    return _CHECKSUM.pack(crc32(body, crc32(key))) + body


def unpack(key: bytes, stored: bytes) -> StoredRecord:
    """Deserialize a record; raises BadRecordError when the checksum does not match."""
    if len(stored) < HEADER_BYTES or _CHECKSUM.unpack_from(stored)[0] != crc32(
        stored[_BODY_START:], crc32(key)
    ):
        message = f"checksum of the record of key {key!r} does not match"
        raise BadRecordError(message)
    event_count, offset = _POSITION.unpack_from(stored, _BODY_START)
    return StoredRecord(stored[HEADER_BYTES:], event_count, offset)


def event_count_of(stored: bytes) -> int:
    """Return the event count of a stored record without verifying the checksum; -1 when the record is too short."""
    if len(stored) < HEADER_BYTES:
        return -1
    return int(_POSITION.unpack_from(stored, _BODY_START)[0])
