"""Writes random values of any Avro type, each byte by the specification, without a library that a decoder might use."""

import struct
from collections.abc import Callable, Mapping
from random import Random

from include.kafka.avro.avro_types import AvroType
from include.kafka.logical_types import LogicalType

EDGES = (0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 16_777_217)
TEXTS = ("", "a", "ä", "\N{SNOWMAN}", "\N{CAT FACE}", "x" * 70, "null", "\0", "A", "B")
DOUBLES = (0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e300, 5e-324)
# 2026-11-22 in milliseconds, and a day before and a millisecond after 1970.
MOMENTS = (1_795_305_600_123, -86_400_000, 1, 0)
UNIT = {"millis": 1, "micros": 1_000, "nanos": 1_000_000}
DEEP = 4


def varint(value: int) -> bytes:
    """Return the encoding of an int or a long."""
    rest = (value << 1) ^ (value >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def payload(one: AvroType, random: Random, depth: int = 0) -> bytes:
    """Return the encoding of a random value of a type; times are in the years that are folded, decimals have the digits of their type."""
    match one.kind:
        case "record":
            return b"".join(payload(declared.type, random, depth + 1) for declared in one.fields)
        case "union":
            index = random.randrange(len(one.branches))
            return varint(index) + payload(one.branches[index], random, depth + 1)
        case "array" | "map":
            return _blocks(one, random, depth)
    return SIMPLE[one.kind](one, random)


def damaged(valid: bytes, random: Random) -> bytes:
    """Return a payload with some bytes changed, left out at the end, or added."""
    changed = bytearray(valid)
    for _ in range(random.randint(0, 3)):
        if changed:
            changed[random.randrange(len(changed))] = random.choice(
                (0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256))
            )
    if random.randrange(3) == 0:
        place = random.randrange(len(changed) + 1)
        changed[place:place] = random.choice((b"\x80" * 5, b"\xff" * 9 + b"\x01", b"\x80" * 10, b"\x01\x02"))
    return bytes(changed[: random.choice((len(changed), random.randint(0, len(changed))))])


def _blocks(one: AvroType, random: Random, depth: int) -> bytes:
    assert one.items is not None
    found = b""
    for _ in range(random.randrange(3) if depth < DEEP else 0):
        count = random.randint(1, 3)
        keys = [
            payload(AvroType("string", "string"), random) if one.kind == "map" else b"" for _ in range(count)
        ]
        items = b"".join(key + payload(one.items, random, depth + 1) for key in keys)
        # A block may say how many bytes it has.
        found += varint(count) if random.randrange(2) else varint(-count) + varint(len(items))
        found += items
    return found + b"\0"


def _number(one: AvroType, random: Random) -> bytes:
    logical = LogicalType.of(one.definition)
    if logical is not None and "timestamp" in logical.name:
        return varint(random.choice(MOMENTS) * UNIT[logical.name.rpartition("-")[2]])
    limit = 2**31 if one.kind == "int" else 2**63
    value = random.choice((*EDGES, random.randrange(-1000, 1000)))
    if logical is not None and logical.name == "date":
        return varint(value % 20_000 - 5_000)
    return varint(value if -limit <= value < limit else value % limit)


def _raw(one: AvroType, random: Random) -> bytes:
    size = one.size if one.kind == "fixed" else None
    logical = LogicalType.of(one.definition)
    if logical is None or logical.name != "decimal":
        return random.randbytes(random.randrange(4) if size is None else size)
    limit = 10**logical.precision
    unscaled = random.choice((0, 1, -1, limit - 1, 1 - limit, random.randrange(-limit + 1, limit)))
    return unscaled.to_bytes(size or unscaled.bit_length() // 8 + 1, "big", signed=True)


def _with_size(value: bytes) -> bytes:
    return varint(len(value)) + value


SIMPLE: Mapping[str, Callable[[AvroType, Random], bytes]] = {
    "null": lambda _one, _random: b"",
    "boolean": lambda _one, random: bytes([random.randrange(2)]),
    "int": _number,
    "long": _number,
    "float": lambda _one, random: struct.pack("<f", random.choice((*DOUBLES[:6], random.uniform(-10, 10)))),
    "double": lambda _one, random: struct.pack("<d", random.choice((*DOUBLES, random.uniform(-10, 10)))),
    "string": lambda _one, random: _with_size(random.choice(TEXTS).encode()),
    "bytes": lambda one, random: _with_size(_raw(one, random)),
    "fixed": _raw,
    "enum": lambda one, random: varint(random.randrange(len(one.symbols))),
}
