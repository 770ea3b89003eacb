"""The form in which stores on disk and in a server keep records, positions and bindings.

A record is its checksum, event count and changelog offset, then the changelog value unchanged. Positions and bindings are JSON.
"""

import json
import struct
from zlib import crc32

from include.position import Offsets
from include.unknown_fields import ignore_unknown_fields
from query_api.store.base import Binding, ChangelogPosition, Page, StoredRecord

_CHECKSUM = struct.Struct(">I")
_POSITION = struct.Struct(">qq")
CHECKSUM_BYTES = _CHECKSUM.size
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
        stored[CHECKSUM_BYTES:], crc32(key)
    ):
        message = f"checksum of the record of key {key!r} does not match"
        raise BadRecordError(message)
    event_count, offset = _POSITION.unpack_from(stored, CHECKSUM_BYTES)
    return StoredRecord(stored[HEADER_BYTES:], event_count, offset)


def unpacked(page: Page) -> list[tuple[bytes, StoredRecord]]:
    """Return the keys and records of a page; raises BadRecordError when a checksum does not match."""
    return [(key, unpack(key, stored)) for key, stored in zip(page.keys, page.stored, strict=True)]


def event_count_of(stored: bytes) -> int:
    """Return the event count of a stored record without verifying the checksum; -1 when the record is too short."""
    if len(stored) < HEADER_BYTES:
        return -1
    return int(_POSITION.unpack_from(stored, CHECKSUM_BYTES)[0])


def dump_position(position: ChangelogPosition) -> bytes:
    """Serialize a position."""
    fields = {
        "next_offset": position.next_offset,
        "as_of": position.as_of,
        "folded": position.folded.newest(),
    }
    boot = {"boot_id": position.boot_id, "as_of_boot_s": position.as_of_boot_s} if position.boot_id else {}
    return json.dumps(fields | boot).encode()


def load_position(stored: bytes) -> ChangelogPosition:
    """Deserialize a position; raises ValueError for invalid bytes."""
    fields = json.loads(stored)
    folded = Offsets.from_newest_json(fields["folded"])
    # The fields of the boot clock are not in a store of an earlier release.
    boot = (fields.get("boot_id", ""), fields.get("as_of_boot_s", 0.0))
    return ChangelogPosition(fields["next_offset"], fields["as_of"], folded, *boot)


def dump_binding(binding: Binding) -> bytes:
    """Serialize a binding."""
    return json.dumps(
        {"cluster_id": binding.cluster_id, "topic": binding.topic, "topic_id": binding.topic_id}
    ).encode()


def load_binding(stored: bytes) -> Binding:
    """Deserialize a binding; raises ValueError, KeyError or TypeError for invalid bytes."""
    return Binding(**ignore_unknown_fields(Binding, json.loads(stored)))
