"""Decodes JSON objects into event columns, natively, with a reason for those that cannot be read.

`event_decoder` chooses the decoder of a topic by the format of its events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    coalesce,
    col,
    date_trunc,
    is_valid_utf8,
    lit,
    struct,
    timestamp_millis,
    when,
)

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    TIMESTAMP,
    VALUE,
    type_column,
)
from include.declarations.event_types.topic_events import EventFormat, TopicEvents
from include.kafka.json_mapping import TIMES, JsonField, JsonMapping
from include.kafka.logical_types import LAST_MICROS
from include.kafka.schema_ids import SchemaIds
from spark_jobs.folding.decode import REASON, RECORD_COLUMNS, Decoder, EventDecoder, Reason
from spark_jobs.folding.event_rules import (
    is_in_wrong_partition,
    key_is_invalid,
    text_is_invalid,
    time_is_out_of_range,
)
from spark_jobs.folding.expressions import strict_json
from spark_jobs.folding.expressions.columns import evaluated_once, with_short_names

# By Avro's names of the JSON types.
READ: dict[str, Callable[[Column], Column]] = {
    "string": strict_json.string,
    "boolean": strict_json.boolean,
    "int": partial(strict_json.whole_number, spark_type="int"),
    "long": partial(strict_json.whole_number, spark_type="bigint"),
    "float": partial(strict_json.floating_point, spark_type="float"),
    "double": partial(strict_json.floating_point, spark_type="double"),
}
# ISO 8601 with date and time; without an offset, the time is UTC. Spark alone would complete a time without a date by today's.
ISO_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?\z"
TEXT = "json:text"
PARSED = "json:parsed"
MEMBERS = "json:members"
TYPE = "json:type"


@dataclass(frozen=True)
class JsonDecoder(Decoder):
    """Decodes JSON objects, each as an event of the first type whose condition it satisfies.

    partitions: number of partitions of the topic. Adds the same columns as EventDecoder.
    """

    partitions: int

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the records of Spark's Kafka source with the event columns added."""
        # The time of the record in Kafka, for routes that compare it with that of the event.
        source = RECORD_COLUMNS | {TIMESTAMP: "timestamp"}
        record = [column for column, name in source.items() if name in records.columns]
        mappings = {reader.name: JsonMapping.of(reader) for reader in self.readers}
        numbers = {name: str(number) for number, name in enumerate(_member_names(mappings))}

        def member(name: str) -> Column:
            return col(MEMBERS).getField(numbers[name])

        texts = records.select(
            *(col(source[column]).alias(column) for column in record),
            col("value").cast("string").alias(TEXT),
        )
        parsed = texts.select("*", strict_json.parsed(col(TEXT)).alias(PARSED))
        read = evaluated_once(
            parsed.select(*record, TEXT, strict_json.members(col(PARSED), numbers).alias(MEMBERS))
        )
        typed = read.select("*", _event_type(mappings, member).alias(TYPE))
        valued = typed.select("*", *(_values(name, mapping, member) for name, mapping in mappings.items()))
        events = evaluated_once(
            valued.select("*", *(_event(name, mapping, member) for name, mapping in mappings.items()))
        )
        decoded = events.select(
            *record,
            self._reason(mappings).alias(REASON),
            # Null if it cannot be read, as for a record in Avro.
            _read_type(mappings).alias(EVENT_TYPE),
            *map(type_column, mappings),
            *(self._shared(name) for name in self.shared_fields),
        )
        return with_short_names(decoded, self.readers)

    def _shared(self, name: str) -> Column:
        return coalesce(*(col(f"{type_column(reader.name)}.{name}") for reader in self.readers)).alias(name)

    def _reason(self, mappings: Mapping[str, JsonMapping]) -> Column:
        is_read = _read_type(mappings).isNotNull()
        is_of_type = col(TYPE).isNotNull()
        return (
            when(col(KEY).isNull(), Reason.NULL_KEY.value)
            .when(col(VALUE).isNull(), Reason.NULL_VALUE.value)
            .when(
                ~is_valid_utf8(col(TEXT)) | strict_json.has_unpaired_surrogate(col(TEXT)),
                Reason.INVALID_TEXT.value,
            )
            .when(col(MEMBERS).isNull(), Reason.MALFORMED_JSON.value)
            .when(is_of_type & ~is_read, Reason.INVALID_FIELD.value)
            .when(text_is_invalid(self.readers), Reason.INVALID_TEXT.value)
            .when(time_is_out_of_range(self.readers), Reason.TIME_OUT_OF_RANGE.value)
            .when(is_of_type & key_is_invalid(self.readers), Reason.INVALID_KEY.value)
            .when(is_of_type & is_in_wrong_partition(self.partitions), Reason.WRONG_PARTITION.value)
        )


def _member_names(mappings: Mapping[str, JsonMapping]) -> tuple[str, ...]:
    """Return the names of the members that the event types read, each once."""
    return tuple(dict.fromkeys(name for one in mappings.values() for name in one.members))


def _event_type(mappings: Mapping[str, JsonMapping], member: Callable[[str], Column]) -> Column:
    """Return the name of the first event type whose condition the object satisfies; null if there is none."""
    names = []
    for name, mapping in mappings.items():
        conditions = [
            coalesce(strict_json.string(member(given)) == text, lit(False))  # noqa: FBT003 - a column
            for given, text in mapping.condition.items()
        ]
        is_of_type = reduce(and_, conditions, col(MEMBERS).isNotNull())
        names.append(when(is_of_type, lit(name)))
    return coalesce(*names, lit(None).cast("string"))


def _read_type(mappings: Mapping[str, JsonMapping]) -> Column:
    """Return the name of the event type whose event the object is; null if it cannot be read."""
    return coalesce(*(when(col(type_column(name)).isNotNull(), lit(name)) for name in mappings))


def _values_column(name: str) -> str:
    return f"values:{name}"


def _values(name: str, mapping: JsonMapping, member: Callable[[str], Column]) -> Column:
    """Return the values of an object of an event type, each null unless the member has the type of its field."""
    values = (_value(field, member(field.member)).alias(field.name) for field in mapping.fields)
    return when(col(TYPE) == name, struct(*values)).alias(_values_column(name))


def _event(name: str, mapping: JsonMapping, member: Callable[[str], Column]) -> Column:
    """Return the event; null unless every member has the type of its field, and no field without null lacks its member."""
    values = col(_values_column(name))
    is_whole = values.isNotNull()
    for field in mapping.fields:
        is_read = values.getField(field.name).isNotNull()
        is_whole = is_whole & (
            is_read | strict_json.is_absent(member(field.member)) if field.is_nullable else is_read
        )
    return when(is_whole, values).alias(type_column(name))


def _value(field: JsonField, member: Column) -> Column:
    if field.logical_type in TIMES:
        return _time(field, member)
    if field.logical_type == "decimal":
        return strict_json.decimal(member, field.member, col(TEXT), field.precision, field.scale)
    if field.item_type is not None:
        return strict_json.array(member, READ[field.item_type], field.has_nullable_items)
    return READ[field.plain_type](member)


def _time(field: JsonField, member: Column) -> Column:
    """Return the time of a text in ISO 8601, or of a number of milliseconds since 1970."""
    number = strict_json.whole_number(member, "bigint")
    # A greater number would overflow; the year 10000 is out of range anyway.
    in_range = when(number.between(-LAST_MICROS // 1000, LAST_MICROS // 1000 + 1), timestamp_millis(number))
    given = strict_json.string(member)
    time = coalesce(when(given.rlike(ISO_TIME), given.try_cast("timestamp")), in_range)
    return date_trunc("millisecond", time) if field.logical_type == "timestamp-millis" else time


def event_decoder(events: TopicEvents, schema_ids: SchemaIds, partitions: int) -> EventDecoder | JsonDecoder:
    """Return the decoder of a topic's events; partitions: of the topic. JSON has no schema ids, and no read model's key."""
    if events.event_format is EventFormat.JSON:
        return JsonDecoder(events.readers, partitions)
    return EventDecoder(events.readers, schema_ids, partitions, events.record_key)
