"""Decodes JSON objects into event columns, natively, with a reason for those that cannot be read."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    coalesce,
    col,
    date_trunc,
    from_json,
    get_json_object,
    is_valid_utf8,
    json_object_keys,
    lit,
    struct,
    timestamp_millis,
    when,
)

from include.errors import ReadModelError
from include.kafka.json_mapping import TIMES, JsonField, JsonMapping
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.decode import Reason
from spark_jobs.folding.event_rules import (
    LAST_MICROS,
    is_in_wrong_partition,
    key_is_invalid,
    text_is_invalid,
    time_is_out_of_range,
)

# Spark's names of the JSON types.
PLAIN = {
    "string": "string",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
}
# ISO 8601 with date and time; without an offset, the time is UTC. Spark alone would complete a time without a date by today's.
ISO_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$"
WHOLE_NUMBER = r"^-?\d{1,18}$"
# The most that Spark has.
DECIMAL_DIGITS = 38
TEXT = "json_text"
CORRUPT = "foldlake_corrupt"


@dataclass(frozen=True)
class JsonDecoder:
    """Decodes objects as the event types in `readers`, each of the first type whose condition it satisfies.

    partitions: number of partitions of the topic. Adds the same columns as EventDecoder.
    """

    readers: tuple[RecordSchema, ...]
    partitions: int

    def __post_init__(self) -> None:  # noqa: D105 - checks its argument
        for reader in self.readers:
            if "occurredOn" not in reader.fields:
                raise ReadModelError(
                    f"Event type {reader.name} has no field occurredOn: add it, every event needs its time."
                )

    @property
    def shared_fields(self) -> tuple[str, ...]:
        """The fields that all event types have, in the order of the first event type."""
        first, *others = self.readers
        return tuple(name for name in first.fields if all(name in other.fields for other in others))

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the records of Spark's Kafka source with the event columns added."""
        # The time of the record in Kafka, for routes that compare it with that of the event.
        also = [name for name in ("timestamp",) if name in records.columns]
        record = ("key", "value", "partition", "offset", *also)
        texts = records.select(*record, col("value").cast("string").alias(TEXT))
        mappings = {reader.name: JsonMapping.of(reader) for reader in self.readers}
        typed = texts.select("*", _event_type(mappings).alias("json_type"))
        parsed = typed.select("*", *(_parsed(name, mapping) for name, mapping in mappings.items()))
        events = parsed.select("*", *(_event(name, mapping) for name, mapping in mappings.items()))
        return events.select(
            *record,
            self._reason(mappings).alias("reason"),
            # Null if it cannot be read, as for a record in Avro.
            coalesce(*(when(col(name).isNotNull(), lit(name)) for name in mappings)).alias("event_type"),
            *mappings,
            *(self._shared(name) for name in self.shared_fields),
        )

    def _shared(self, name: str) -> Column:
        return coalesce(*(col(f"{reader.name}.{name}") for reader in self.readers)).alias(name)

    def _reason(self, mappings: Mapping[str, JsonMapping]) -> Column:
        is_read = coalesce(*(when(col(name).isNotNull(), lit(name)) for name in mappings)).isNotNull()
        is_of_type = col("json_type").isNotNull()
        return (
            when(col("key").isNull(), Reason.NULL_KEY.value)
            .when(col("value").isNull(), Reason.NULL_VALUE.value)
            .when(~is_valid_utf8(col(TEXT)), Reason.INVALID_TEXT.value)
            .when(json_object_keys(col(TEXT)).isNull(), Reason.MALFORMED_JSON.value)
            .when(is_of_type & ~is_read, Reason.INVALID_FIELD.value)
            .when(text_is_invalid(self.readers), Reason.INVALID_TEXT.value)
            .when(time_is_out_of_range(self.readers), Reason.TIME_OUT_OF_RANGE.value)
            .when(is_of_type & key_is_invalid(self.readers), Reason.INVALID_KEY.value)
            .when(is_of_type & is_in_wrong_partition(self.partitions), Reason.WRONG_PARTITION.value)
        )


def _event_type(mappings: Mapping[str, JsonMapping]) -> Column:
    """Return the name of the first event type whose condition the object satisfies; null if there is none."""
    names = []
    for name, mapping in mappings.items():
        conditions = [
            coalesce(get_json_object(col(TEXT), _path(member)) == text, lit(False))  # noqa: FBT003 - a column
            for member, text in mapping.condition.items()
        ]
        names.append(when(reduce(and_, conditions, lit(True)), lit(name)))  # noqa: FBT003 - a column
    return coalesce(*names, lit(None).cast("string"))


def _parsed(name: str, mapping: JsonMapping) -> Column:
    """Return the members of an object of an event type; times as texts."""
    members = ", ".join(f"`{_quoted(field.member)}` {_member_type(field)}" for field in mapping.fields)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    of_type = when(col("json_type") == name, col(TEXT))
    return from_json(of_type, f"{members}, `{CORRUPT}` string", options).alias(f"json_{name}")


def _event(name: str, mapping: JsonMapping) -> Column:
    """Return the event; null unless every member has the type of its field, and no field without null lacks its member."""
    parsed = col(f"json_{name}")
    values = {field.name: _value(field, parsed.getField(field.member)) for field in mapping.fields}
    is_whole = parsed.getField(CORRUPT).isNull()
    for field in mapping.fields:
        is_given = parsed.getField(field.member).isNotNull() if field.is_nullable else lit(True)  # noqa: FBT003 - a column
        is_whole = is_whole & (values[field.name].isNotNull() | ~is_given)
    event = struct(*(value.alias(field) for field, value in values.items()))
    return when((col("json_type") == name) & is_whole, event).alias(name)


def _value(field: JsonField, member: Column) -> Column:
    if field.logical_type in TIMES:
        return _time(member)
    if field.logical_type == "decimal":
        narrowed = member.try_cast(f"decimal({field.precision},{field.scale})")
        # Spark leaves out the commas of a text.
        has_comma = get_json_object(col(TEXT), _path(field.member)).contains(",")
        return when((narrowed == member) & ~has_comma, narrowed)
    return member


def _time(member: Column) -> Column:
    """Return the time of a text in ISO 8601, or of a number of milliseconds since 1970."""
    number = when(member.rlike(WHOLE_NUMBER), member.cast("bigint"))
    # A greater number would overflow; the year 10000 is out of range anyway.
    in_range = when(number.between(-LAST_MICROS // 1000, LAST_MICROS // 1000 + 1), timestamp_millis(number))
    text = when(member.rlike(ISO_TIME), member.try_cast("timestamp"))
    return date_trunc("millisecond", coalesce(in_range, text))


def _member_type(field: JsonField) -> str:
    if field.logical_type == "decimal":
        # As many digits after the point as fit behind the field's digits before it: a value with too many is refused, not rounded.
        return f"decimal({DECIMAL_DIGITS},{DECIMAL_DIGITS - field.precision + field.scale})"
    if field.logical_type:
        return "string"
    avro_type: Any = field.avro_type if isinstance(field.avro_type, str) else field.avro_type["type"]
    if avro_type == "array":
        return f"array<{PLAIN[field.avro_type['items']]}>"
    return PLAIN[avro_type]


def _path(member: str) -> str:
    return f"$['{member}']"


def _quoted(name: str) -> str:
    return name.replace("`", "``")
