"""The partition of a key as computed by Kafka's Java client, in native Spark columns without a Python worker.

A port of org.apache.kafka.common.utils.Utils.murmur2 to 64-bit integers: Spark's integers are signed and fail on overflow.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

SEED = 0x9747B28C
M = 0x5BD1E995
R = 24
BLOCK_BYTES = 4
UNSIGNED = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF


def partition_of_key(key: str, partitions: int) -> Column:
    """Return the partition of each key in a string column: the positive murmur2 hash of its UTF-8 bytes, modulo `partitions`."""
    data = col(key).cast("binary")
    size = F.length(data).cast("long")
    blocks = F.floor(size / BLOCK_BYTES)
    numbers = F.when(blocks > 0, F.sequence(lit(1).cast("long"), blocks)).otherwise(
        F.array().cast("array<bigint>")
    )
    hashed = F.aggregate(numbers, size.bitwiseXOR(lit(SEED)), lambda h, block: _mixed(h, _block(data, block)))
    tail_start = blocks * BLOCK_BYTES
    rest = size - tail_start
    tail = lit(0).cast("long")
    for index in range(BLOCK_BYTES - 1):
        byte = F.when(rest > index, F.shiftleft(_byte(data, tail_start + index + 1), 8 * index)).otherwise(
            lit(0)
        )
        tail = tail.bitwiseXOR(byte)
    hashed = _evaluated_once(hashed, lambda h: F.when(rest > 0, _times_m(h.bitwiseXOR(tail))).otherwise(h))
    hashed = _xor_shifted(_times_m(_xor_shifted(hashed, 13)), 15)
    return (hashed.bitwiseAND(lit(POSITIVE)) % lit(partitions)).cast("int")


def _mixed(h: Column, k: Column) -> Column:
    return _times_m(h).bitwiseXOR(_times_m(_xor_shifted(_times_m(k), R)))


def _xor_shifted(value: Column, bits: int) -> Column:
    return _evaluated_once(value, lambda v: v.bitwiseXOR(F.shiftright(v, bits)))


def _times_m(value: Column) -> Column:
    """Return the lower 32 bits of `value` times M, in two halves so that nothing overflows."""
    return _evaluated_once(value, _product)


def _product(value: Column) -> Column:
    low = value * lit(M & 0xFFFF)
    high = F.shiftleft((value * lit(M >> 16)).bitwiseAND(lit(0xFFFF)), 16)
    return (low + high).bitwiseAND(lit(UNSIGNED))


def _evaluated_once(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use(value)` with the value computed once: Spark recomputes a column wherever it is used."""
    return F.get(F.transform(F.array(value), use), lit(0))


def _block(data: Column, number: Column) -> Column:
    """Return the `number`th (from 1) block of four bytes as an unsigned little-endian integer."""
    start = (number - 1) * BLOCK_BYTES + 1
    value = _byte(data, start)
    for index in range(1, BLOCK_BYTES):
        value = value + F.shiftleft(_byte(data, start + index), 8 * index)
    return value


def _byte(data: Column, position: Column) -> Column:
    """Return the byte at a position (from 1) as a number."""
    return F.conv(F.hex(data.substr(position.cast("int"), lit(1))), 16, 10).cast("long")
