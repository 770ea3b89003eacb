"""Avro's binary encoding as Avro's Java library reads it (`BinaryDecoder`, `GenericDatumReader.skip` of 1.12.1): numbers and sizes.

Values that only a writer's schema has are passed over.
"""

from collections.abc import Callable, Mapping

from include.kafka.avro.avro_types import AvroType
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


# From the payload and a position in it to the position after the value there. Any exception: the payload is not valid.
Skip = Callable[[bytes, int], int]


def skipping(one: AvroType) -> Skip:
    """Return the function that passes over a value of a type, which may be recursive."""
    return _skipping(one, {})


def _skipping(one: AvroType, made: dict[int, list[Skip]]) -> Skip:
    """Return the function that passes over a value that the reader does not have; a recursive type uses itself."""
    if id(one) in made:
        # It is in the list when it is called.
        again = made[id(one)]
        return lambda data, pos: again[0](data, pos)  # noqa: PLW0108 - as above
    cell = made[id(one)] = []
    inner = [_skipping(part, made) for part in _parts(one)]
    cell.append(_skip_of(one, inner))
    return cell[0]


def _parts(one: AvroType) -> tuple[AvroType, ...]:
    if one.items is not None:
        return (one.items,)
    return one.branches or tuple(found.type for found in one.fields)


def _skip_of(one: AvroType, inner: list[Skip]) -> Skip:
    match one.kind:
        case "record":
            return lambda data, pos: _skip_all(inner, data, pos)
        case "union":
            return lambda data, pos: _skip_branch(inner, data, pos)
        case "array":
            return _skipping_blocks(inner[0])
        case "map":
            value = inner[0]
            return _skipping_blocks(lambda data, pos: value(data, _skip_bytes(data, pos)))
        case "fixed":
            return _skipping_size(one.size)
    return SIMPLE_SKIPS[one.kind]


def _skip_bytes(data: bytes, pos: int) -> int:
    size, pos = read_long(data, pos)
    # Java does not check a size that it only skips.
    return end_of(data, pos, max(size, 0))


def _skipping_size(size: int) -> Skip:
    return lambda data, pos: end_of(data, pos, size)


def _skip_all(fields: list[Skip], data: bytes, pos: int) -> int:
    for skip in fields:
        pos = skip(data, pos)
    return pos


def _skip_branch(branches: list[Skip], data: bytes, pos: int) -> int:
    index, pos = read_int(data, pos)
    if index < 0:
        raise InvalidPayloadError
    return branches[index](data, pos)


def _skipping_blocks(item: Skip) -> Skip:
    def skip(data: bytes, pos: int) -> int:
        while True:
            count, pos = read_long(data, pos)
            if count < 0:
                pos = _skip_bytes(data, pos)
                continue
            if count > AVRO_LIMIT_BYTES:
                raise InvalidPayloadError
            if count == 0:
                return pos
            for _ in range(count):
                pos = item(data, pos)

    return skip


SIMPLE_SKIPS: Mapping[str, Skip] = {
    "null": _skipping_size(0),
    "boolean": _skipping_size(1),
    "int": lambda data, pos: read_int(data, pos)[1],
    "long": lambda data, pos: read_long(data, pos)[1],
    "float": _skipping_size(4),
    "double": _skipping_size(8),
    "string": _skip_bytes,
    "bytes": _skip_bytes,
    # The index of its symbol.
    "enum": lambda data, pos: read_int(data, pos)[1],
}
