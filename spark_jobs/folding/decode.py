"""Decodes the records of a source topic into event columns, natively, with a reason for records that cannot be folded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import coalesce, col, expr, length, lit, substring, when

from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import HEADER_BYTES, MAGIC, header

MAX_KEY_BYTES = 256
OTHER_TYPE = "other event type"
UNKNOWN_SCHEMA_ID = "FOLDLAKE_UNKNOWN_SCHEMA_HEADER"


class Reason(StrEnum):
    """Why a record cannot be folded: the `reason` header of its dead letter."""

    NULL_KEY = "null_key"
    NULL_VALUE = "null_value"
    WRONG_MAGIC = "wrong_magic"
    UNKNOWN_SCHEMA_ID = "unknown_schema_id"
    UNDECODABLE_PAYLOAD = "undecodable_payload"
    INVALID_KEY = "invalid_key"


@dataclass(frozen=True)
class SchemaIds:
    """The known schema ids of a source topic.

    writers: id -> the schema of the records that have this id.
    rejected: ids that are not in the registry.
    stop_at_unknown: whether any other id fails the query, which then looks it up and restarts; if false, the id is rejected.
    """

    writers: Mapping[int, RecordSchema]
    rejected: frozenset[int] = field(default_factory=frozenset)
    stop_at_unknown: bool = True


@dataclass(frozen=True)
class EventDecoder:
    """Decodes records as the event types in `readers`.

    Adds the columns `reason` (null unless the record cannot be folded), `event_type`, one struct per event type, and every
    field that all event types share.
    """

    readers: tuple[RecordSchema, ...]
    schema_ids: SchemaIds

    def __post_init__(self) -> None:  # noqa: D105 - checks its argument
        for reader in self.readers:
            if "occurredOn" not in reader.fields:
                message = (
                    f"Event type {reader.name} has no field occurredOn: add it, every event needs its time."
                )
                raise ReadModelError(message)

    @property
    def shared_fields(self) -> tuple[str, ...]:
        """The fields that all event types have, in the order of the first event type."""
        first, *others = self.readers
        return tuple(name for name in first.fields if all(name in other.fields for other in others))

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the records of Spark's Kafka source with the event columns added."""
        framed = records.select(
            "key", "value", "partition", "offset", substring(col("value"), 1, HEADER_BYTES).alias("header")
        )
        decoded = framed.select("*", *(self._payload(reader) for reader in self.readers))
        return decoded.select("*", self._event_type(), *map(self._shared, self.shared_fields)).withColumn(
            "reason", self._reason()
        )

    def folded_ids(self, reader: RecordSchema) -> tuple[int, ...]:
        """Return the schema ids of a reader's event type."""
        return tuple(i for i, writer in self.schema_ids.writers.items() if writer.name == reader.name)

    def _payload(self, reader: RecordSchema) -> Column:
        payload = expr(f"substring(value, {HEADER_BYTES + 1})")
        decoded = lit(None)
        for schema_id in self.folded_ids(reader):
            writer = self.schema_ids.writers[schema_id]
            options = {"mode": "PERMISSIVE", "avroSchema": reader.renamed_like(writer).text}
            branch = from_avro(payload, writer.text, options)
            decoded = when(col("header") == lit(header(schema_id)), branch).otherwise(decoded)
        return decoded.alias(reader.name)

    def _event_type(self) -> Column:
        name = lit(None).cast("string")
        for reader in self.readers:
            if self.folded_ids(reader):
                name = when(col(f"{reader.name}.occurredOn").isNotNull(), lit(reader.name)).otherwise(name)
        return name.alias("event_type")

    def _shared(self, name: str) -> Column:
        present = [col(f"{reader.name}.{name}") for reader in self.readers if self.folded_ids(reader)]
        return coalesce(*present, lit(None)).alias(name)

    def _reason(self) -> Column:
        folded = [header(i) for reader in self.readers for i in self.folded_ids(reader)]
        other_types = [header(i) for i in self.schema_ids.writers if header(i) not in folded]
        unknown: Column = lit(Reason.UNKNOWN_SCHEMA_ID.value)
        if self.schema_ids.stop_at_unknown:
            rejected = col("header").isin([header(i) for i in self.schema_ids.rejected])
            unknown = when(rejected, unknown).otherwise(
                expr(f"raise_error(concat('{UNKNOWN_SCHEMA_ID}=', hex(header)))").cast("string")
            )
        framed = (length(col("header")) == HEADER_BYTES) & (
            substring(col("header"), 1, 1) == lit(bytes([MAGIC]))
        )
        return (
            when(col("key").isNull(), Reason.NULL_KEY.value)
            .when(col("value").isNull(), Reason.NULL_VALUE.value)
            .when(~framed, Reason.WRONG_MAGIC.value)
            .when(col("header").isin(folded) & col("event_type").isNull(), Reason.UNDECODABLE_PAYLOAD.value)
            .when(~col("header").isin(folded + other_types), unknown)
            .when(self._key_is_invalid(), Reason.INVALID_KEY.value)
        )

    def _key_is_invalid(self) -> Column:
        """Return whether the record's key differs from the event's entity, whose events would then be in several partitions."""
        size = length(col("key"))
        invalid = (size == 0) | (size > MAX_KEY_BYTES)
        for reader in self.readers:
            if reader.key_field is not None and self.folded_ids(reader):
                entity = col(f"{reader.name}.{reader.key_field}").cast("binary")
                same = entity == col("key")
                invalid = invalid | ~coalesce(same, lit(True))  # noqa: FBT003 - a literal column
        return invalid


def good_events(events: DataFrame) -> DataFrame:
    """Return the events that a read model folds: decodable, and of one of its types."""
    # One expression instead of two conditions, which Spark may evaluate in any order. A record with an unknown schema id
    # has no event type either, and only evaluating its reason stops the query, so the reason must come first.
    not_folded = coalesce(col("reason"), when(col("event_type").isNull(), lit(OTHER_TYPE)))
    return events.where(not_folded.isNull())


def undecodable(events: DataFrame) -> DataFrame:
    """Return the records that cannot be folded, with the reason."""
    return events.where(col("reason").isNotNull()).select("key", "value", "partition", "offset", "reason")
