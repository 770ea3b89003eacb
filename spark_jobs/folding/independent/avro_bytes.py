"""Numbers and sizes in Avro's binary encoding, read as Avro's Java library reads them (`BinaryDecoder` of 1.12.1)."""

from include.spark.stream_config import AVRO_LIMIT_BYTES

LONG_BITS, INT_BITS = 64, 32


class InvalidPayloadError(ValueError):
    """A payload that has no value in the reader's schema."""


def read_long(data: bytes, pos: int) -> tuple[int, int]:
    """Read a long, of at most ten bytes."""
    byte = data[pos]
    if byte < 0x80:  # noqa: PLR2004 - the highest bit: whether another byte follows
        return (byte >> 1) ^ -(byte & 1), pos + 1
    return _varint(data, pos, LONG_BITS)


def read_int(data: bytes, pos: int) -> tuple[int, int]:
    """Read an int, of at most five bytes; bits beyond 32 are cut off."""
    byte = data[pos]
    if byte < 0x80:  # noqa: PLR2004 - as above
        return (byte >> 1) ^ -(byte & 1), pos + 1
    return _varint(data, pos, INT_BITS)


def _varint(data: bytes, pos: int, bits: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, bits, 7):
        byte = data[pos]
        pos += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - as above
            found &= (1 << bits) - 1
            return (found >> 1) ^ -(found & 1), pos
    raise InvalidPayloadError


def end_of(data: bytes, pos: int, size: int) -> int:
    """Return the position after this many bytes; raises InvalidPayloadError if there are fewer."""
    if size < 0 or pos + size > len(data):
        raise InvalidPayloadError
    return pos + size


def read_block(data: bytes, pos: int, before: int) -> tuple[int, int]:
    """Return how many items the next block of an array or a map has; 0: it has ended."""
    count, pos = read_long(data, pos)
    if count < 0:
        # The block's size in bytes, which only helps to skip it.
        _, pos = read_long(data, pos)
        count = -count
        if count >> (LONG_BITS - 1):
            # Java cannot negate the smallest long, and takes it for the end of an array without items.
            if before:
                raise InvalidPayloadError
            count = 0
    if before + count > AVRO_LIMIT_BYTES:
        raise InvalidPayloadError
    return count, pos
