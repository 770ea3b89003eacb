"""The rules that a decoded event must satisfy to be folded, as native columns."""

from collections.abc import Iterable, Iterator
from datetime import date
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql.functions import coalesce, col, expr, is_valid_utf8, length, lit, unix_date, unix_micros

from include.kafka.logical_types import LogicalType, field_types
from include.kafka.record_key import MAX_KEY_BYTES
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.key_partition import partition_of_key

# Python, Avro and Delta libraries represent the years 1 to 9999. Two days at each end are left out: in another time zone, or when
# Python computes a time zone's offset, they may be in the year 0 or 10000.
EPOCH = date(1970, 1, 1)
FIRST_DAY = (date(1, 1, 3) - EPOCH).days
LAST_DAY = (date(9999, 12, 29) - EPOCH).days
# By how much the clock that writes an item's creation time may be ahead of the one that writes Kafka's record times.
CREATION_TOLERANCE_HOURS = 1
MICROS_PER_DAY = 24 * 3600 * 1_000_000
FIRST_MICROS = FIRST_DAY * MICROS_PER_DAY
LAST_MICROS = (LAST_DAY + 1) * MICROS_PER_DAY - 1
TIMES = frozenset(f"{prefix}timestamp-{unit}" for prefix in ("", "local-") for unit in ("millis", "micros"))


def key_is_invalid(readers: Iterable[RecordSchema]) -> Column:
    """Return whether the record's key has an invalid size, or differs from the entity of the event.

    An entity's events would otherwise be in several partitions.
    """
    size = length(col("key"))
    invalid = (size == 0) | (size > MAX_KEY_BYTES)
    for reader in readers:
        if reader.key_field is not None:
            entity = col(f"{reader.name}.{reader.key_field}").cast("binary")
            invalid = invalid | _is_true(entity != col("key"))
    return invalid


def is_not_record_key(record_key: Column) -> Column:
    """Return whether an event is not under the key that its topic's records must have.

    A key's events would otherwise be in several partitions.
    """
    is_event = col("event_type").isNotNull()
    return is_event & ~record_key.cast("string").cast("binary").eqNullSafe(col("key"))


def is_in_wrong_partition(partitions: int) -> Column:
    """Return whether the record is in another partition than the Java client's partitioner assigns to its key."""
    return partition_of_key(col("key"), partitions) != col("partition")


def text_is_invalid(readers: Iterable[RecordSchema]) -> Column:
    """Return whether the key or a string field of the event is not UTF-8."""
    texts = [column for column, avro_type in _fields(readers) if _base_type(avro_type) == "string"]
    return _any(~is_valid_utf8(text) for text in (col("key").cast("string"), *texts))


def time_is_out_of_range(readers: Iterable[RecordSchema]) -> Column:
    """Return whether a time or date field of the event is before 0001-01-03 or after 9999-12-29."""
    return _any(_outside(column, LogicalType.of(avro_type)) for column, avro_type in _fields(readers))


def is_created_in_future(readers: Iterable[RecordSchema]) -> Column:
    """Return whether an item was created later than its record's time in Kafka, beyond what clocks differ.

    Its creation time would end the lifetimes of all others.
    """
    limit = col("timestamp") + expr(f"INTERVAL {CREATION_TOLERANCE_HOURS} HOURS")
    return _any(
        col(f"{reader.name}.{reader.lifetime.created}").cast("timestamp") > limit
        for reader in readers
        if reader.lifetime is not None
    )


def lifetime_has_ended(readers: Iterable[RecordSchema]) -> Column:
    """Return whether the record was written after the lifetime of its item, when its state need not exist any more."""
    return _any(
        col("timestamp")
        > col(f"{reader.name}.{reader.lifetime.created}").cast("timestamp")
        + expr(f"INTERVAL {reader.lifetime.hours} HOURS")
        for reader in readers
        if reader.lifetime is not None
    )


def _outside(column: Column, logical: LogicalType | None) -> Column:
    if logical is not None and logical.name in TIMES:
        return ~unix_micros(column.cast("timestamp")).between(FIRST_MICROS, LAST_MICROS)
    if logical is not None and logical.name == "date":
        return ~unix_date(column).between(FIRST_DAY, LAST_DAY)
    return lit(False)  # noqa: FBT003 - a literal column


def _fields(readers: Iterable[RecordSchema]) -> Iterator[tuple[Column, Any]]:
    """Yield the column and the Avro type of each field; nested fields are not checked."""
    for reader in readers:
        for name, avro_type in field_types(reader).items():
            yield col(f"{reader.name}.{name}"), avro_type


def _base_type(avro_type: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    return avro_type.get("type") if isinstance(avro_type, dict) else avro_type


def _any(conditions: Iterable[Column]) -> Column:
    found = [_is_true(condition) for condition in conditions]
    # There are none as long as the registry has no schema of any event type.
    return reduce(or_, found) if found else lit(False)  # noqa: FBT003 - a literal column


def _is_true(condition: Column) -> Column:
    return coalesce(condition, lit(False))  # noqa: FBT003 - a literal column
