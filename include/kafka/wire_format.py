"""Confluent's wire format: a zero byte, the schema's id in 4 bytes big-endian, then the Avro payload.

Source: Confluent's documentation of its schema registry, "Wire format".
"""

import struct

MAGIC = 0
HEADER_BYTES = 5
_HEADER = struct.Struct(">bI")


class UndecodableError(ValueError):
    """A record's value that is not in Confluent's wire format, or whose payload does not match its schema."""


def header(schema_id: int) -> bytes:
    """Return the 5 bytes that precede a payload written with this schema."""
    return _HEADER.pack(MAGIC, schema_id)


def split(value: bytes) -> tuple[int, bytes]:
    """Return (schema id, payload); raises UndecodableError when the value is not framed."""
    if len(value) < HEADER_BYTES or value[0] != MAGIC:
        message = f"not in Confluent's framing: starts with {value[:HEADER_BYTES].hex()!r}"
        raise UndecodableError(message)
    return _HEADER.unpack_from(value)[1], value[HEADER_BYTES:]
