"""The rules that a decoded event must satisfy to be folded, as native columns.

Kafka's own Java client computes the partition of a key, without a Python worker.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql.functions import (
    coalesce,
    col,
    exists,
    expr,
    is_valid_utf8,
    length,
    lit,
    map_keys,
    map_values,
    unix_date,
    unix_micros,
)

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    PARTITION,
    TIMESTAMP,
    type_column,
)
from include.kafka.avro.avro_types import AvroType, is_number, without_null
from include.kafka.logical_types import (
    FIRST_DAY,
    FIRST_MICROS,
    LAST_DAY,
    LAST_MICROS,
    LogicalType,
    field_types,
)
from include.kafka.record_schema import CREATION_TOLERANCE_HOURS, RecordSchema
from include.kafka.wire_format import MAX_KEY_BYTES
from spark_jobs.folding.expressions.analysed import as_column, as_expression, catalyst, java_class, sequence
from spark_jobs.folding.expressions.failed_expressions import attempt

TIMES = frozenset(f"{prefix}timestamp-{unit}" for prefix in ("", "local-") for unit in ("millis", "micros"))
KAFKA_UTILS = "org.apache.kafka.common.utils.Utils"
POSITIVE = 0x7FFFFFFF


def key_is_invalid(readers: Iterable[RecordSchema]) -> Column:
    """Return whether the record's key has an invalid size, or differs from the entity of the event.

    An entity's events would otherwise be in several partitions.
    """
    size = length(col(KEY))
    invalid = (size == 0) | (size > MAX_KEY_BYTES)
    for reader in readers:
        if reader.key_field is not None:
            entity = col(f"{type_column(reader.name)}.{reader.key_field}").cast("binary")
            invalid = invalid | _is_true(entity != col(KEY))
    return invalid


def is_not_record_key(record_key: Column) -> Column:
    """Return whether an event is not under the key that its topic's records must have.

    A key's events would otherwise be in several partitions. No record has a key that raises an error.
    """
    is_event = col(EVENT_TYPE).isNotNull()
    return is_event & ~attempt(record_key).cast("string").cast("binary").eqNullSafe(col(KEY))


def is_in_wrong_partition(partitions: int) -> Column:
    """Return whether the record is in another partition than the Java client's partitioner assigns to its key."""
    return partition_of_key(col(KEY), partitions) != col(PARTITION)


def text_is_invalid(readers: Iterable[RecordSchema]) -> Column:
    """Return whether the key or a text in the event, at any depth, is not UTF-8."""
    found = (_somewhere(column, avro_type, _is_no_text) for column, avro_type in _fields(readers))
    return _any((~is_valid_utf8(col(KEY).cast("string")), *found))


def time_is_out_of_range(readers: Iterable[RecordSchema]) -> Column:
    """Return whether a time or date in the event, at any depth, is before 0001-01-03 or after 9999-12-29."""
    return _any(_somewhere(column, avro_type, _outside) for column, avro_type in _fields(readers))


def is_created_in_future(readers: Iterable[RecordSchema]) -> Column:
    """Return whether an item was created later than its record's time in Kafka, beyond what clocks differ.

    Its creation time would end the lifetimes of all others.
    """
    limit = col(TIMESTAMP) + expr(f"INTERVAL {CREATION_TOLERANCE_HOURS} HOURS")
    return _any(
        col(f"{type_column(reader.name)}.{reader.lifetime.created}").cast("timestamp") > limit
        for reader in readers
        if reader.lifetime is not None
    )


def lifetime_has_ended(readers: Iterable[RecordSchema]) -> Column:
    """Return whether the record was written after the lifetime of its item, when its state need not exist any more."""
    return _any(
        col(TIMESTAMP)
        > col(f"{type_column(reader.name)}.{reader.lifetime.created}").cast("timestamp")
        + expr(f"INTERVAL {reader.lifetime.hours} HOURS")
        for reader in readers
        if reader.lifetime is not None
    )


def _is_no_text(column: Column, avro_type: AvroType) -> Column | None:
    if avro_type.kind == "map":
        return exists(map_keys(column), lambda key: ~is_valid_utf8(key))
    return ~is_valid_utf8(column) if avro_type.kind == "string" else None


def _outside(column: Column, avro_type: AvroType) -> Column | None:
    logical = LogicalType.of(avro_type.definition)
    if logical is not None and logical.name in TIMES:
        return ~unix_micros(column.cast("timestamp")).between(FIRST_MICROS, LAST_MICROS)
    if logical is not None and logical.name == "date":
        return ~unix_date(column).between(FIRST_DAY, LAST_DAY)
    return None


def _somewhere(
    column: Column, avro_type: AvroType, rule: Callable[[Column, AvroType], Column | None]
) -> Column | None:
    """Return whether a value, or one inside it, breaks a rule; None if the rule concerns no type in it."""
    kept = without_null(avro_type)
    broken = [rule(column, kept)]
    if kept.kind == "record":
        broken += [_somewhere(column[one.name], one.type, rule) for one in kept.fields]
    elif kept.kind == "union" and not is_number(kept):
        # Spark's type of a union of several types.
        broken += [
            _somewhere(column[f"member{index}"], branch, rule) for index, branch in enumerate(kept.branches)
        ]
    elif kept.items is not None and _concerns(kept.items, rule):
        items = kept.items
        values = column if kept.kind == "array" else map_values(column)
        broken.append(exists(values, lambda value: _any([_somewhere(value, items, rule)])))
    found = [one for one in broken if one is not None]
    return _any(found) if found else None


def _concerns(avro_type: AvroType, rule: Callable[[Column, AvroType], Column | None]) -> bool:
    return rule(lit(None), avro_type) is not None or any(
        _concerns(inner, rule) for _, inner in avro_type.parts
    )


def _fields(readers: Iterable[RecordSchema]) -> Iterator[tuple[Column, AvroType]]:
    """Yield the column and the Avro type of each field."""
    for reader in readers:
        for name, avro_type in field_types(reader).items():
            yield col(f"{type_column(reader.name)}.{name}"), avro_type


def _any(conditions: Iterable[Column | None]) -> Column:
    found = [_is_true(condition) for condition in conditions if condition is not None]
    # There are none as long as the registry has no schema of any event type.
    return reduce(or_, found) if found else lit(False)  # noqa: FBT003 - a literal column


def _is_true(condition: Column) -> Column:
    return coalesce(condition, lit(False))  # noqa: FBT003 - a literal column


def partition_of_key(key: Column, partitions: int) -> Column:
    """Return the partition that the Java client's default partitioner assigns to each key, a binary column; null for null.

    Source: org.apache.kafka.clients.producer.internals.BuiltInPartitioner.partitionForKey.
    """
    return _murmur2(key).bitwiseAND(lit(POSITIVE)) % lit(partitions)


def _murmur2(key: Column) -> Column:
    # SQL functions cannot pass bytes to a static Java method; Spark's own expression StaticInvoke can.
    invoked = catalyst("objects.StaticInvoke")(
        java_class("org.apache.spark.util.Utils").classForName(KAFKA_UTILS, True, False),  # noqa: FBT003 - load it, not Spark's own
        java_class("org.apache.spark.sql.types.DataTypes").IntegerType,
        "murmur2",
        sequence([as_expression(key)]),
        sequence([]),  # no types to cast the arguments to
        True,  # noqa: FBT003 - null for a null key
        False,  # noqa: FBT003 - and only for a null key
        True,  # noqa: FBT003 - deterministic
        java_class("scala.Option").empty(),
    )
    return as_column(invoked)
