"""How a record's key and value are encoded: keys in UTF-8, of a limited length; values in Confluent's wire format.

The wire format is a zero byte, the schema's id in 4 bytes big-endian, then the Avro payload. Source: Confluent's documentation of its
schema registry, "Wire format". A key may contain any character, control characters included.
"""

import struct

MAGIC = 0
HEADER_BYTES = 5
_HEADER = struct.Struct(">bI")
# Of an event's key. An event with a longer one is a dead letter, so a command refuses it.
MAX_KEY_BYTES = 256


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


def key_fault(key: bytes, max_bytes: int = MAX_KEY_BYTES) -> str | None:
    """Return why a record cannot have a key, as the end of a sentence; None if it can.

    max_bytes: the longest key of an event by default. A key that a read model derives may be longer, as far as its store allows.
    """
    if not key:
        return "is empty"
    if len(key) > max_bytes:
        return f"has {len(key)} bytes of UTF-8; at most {max_bytes} are allowed"
    try:
        key.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None
