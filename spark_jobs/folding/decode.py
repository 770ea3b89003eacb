"""Decodes the records of a source topic into event columns, natively, with a reason for records that cannot be folded."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, expr, length, lit, substring, when

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    VALUE,
    shared_fields,
    type_column,
)
from include.declarations.rules.expression import Expression
from include.errors import ReadModelError
from include.kafka.logical_types import Comparison
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection
from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID, SchemaIds
from include.kafka.wire_format import HEADER_BYTES, MAGIC, header
from spark_jobs.folding.event_rules import (
    is_created_in_future,
    is_in_wrong_partition,
    is_not_record_key,
    key_is_invalid,
    lifetime_has_ended,
    text_is_invalid,
    time_is_out_of_range,
)
from spark_jobs.folding.expressions.columns import column_of, with_short_names
from spark_jobs.folding.logical_conversion import comparison_of, event_column

LOG = logging.getLogger(__name__)

# The columns of Spark's Kafka source, by their names here.
RECORD_COLUMNS = {KEY: "key", VALUE: "value", PARTITION: "partition", OFFSET: "offset"}
HEADER = "record:header"
REASON = "record:reason"
FAILURE = "record:failure"
OTHER_TYPE = "other event type"
EXCLUDED = "excluded by a condition"


class Reason(StrEnum):
    """Why a record cannot be folded: the `reason` header of its dead letter."""

    NULL_KEY = "null_key"
    NULL_VALUE = "null_value"
    WRONG_MAGIC = "wrong_magic"
    UNKNOWN_SCHEMA_ID = "unknown_schema_id"
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    UNDECODABLE_PAYLOAD = "undecodable_payload"
    MALFORMED_JSON = "malformed_json"
    INVALID_FIELD = "invalid_field"
    INVALID_TEXT = "invalid_text"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    INVALID_KEY = "invalid_key"
    WRONG_PARTITION = "wrong_partition"
    CREATED_IN_FUTURE = "created_in_future"
    LIFETIME_ENDED = "lifetime_ended"
    FAILED_EXPRESSION = "failed_expression"


@dataclass(frozen=True)
class Decoder:
    """Decodes records as the event types in `readers`; raises ReadModelError for one without a time."""

    readers: tuple[RecordSchema, ...]

    def __post_init__(self) -> None:  # noqa: D105 - checks its argument
        for reader in self.readers:
            if "occurredOn" not in reader.fields:
                raise ReadModelError(
                    f"Event type {reader.name} has no field occurredOn: add it, every event needs its time."
                )

    @property
    def shared_fields(self) -> tuple[str, ...]:
        """The fields that all event types have, in the order of the first event type."""
        return shared_fields(self.readers)


@dataclass(frozen=True)
class EventDecoder(Decoder):
    """Decodes records in Avro; `partitions` is the number of partitions of their topic.

    record_key: the key that every event's record must have; None: the entity that the event type's schema names.

    The columns: those of the record, REASON (null unless the record cannot be folded), EVENT_TYPE, one struct per event type, every
    field that all event types share, and the short names of the others (event_columns.py).
    """

    schema_ids: SchemaIds
    partitions: int
    record_key: Expression | None = None

    @property
    def record_columns(self) -> dict[str, str]:
        """The columns of Spark's Kafka source that are needed to decode a record: name here -> name there."""
        has_lifetime = any(reader.lifetime is not None for reader in self.readers)
        return RECORD_COLUMNS | ({TIMESTAMP: "timestamp"} if has_lifetime else {})

    def decode(self, records: DataFrame, also: tuple[str, ...] = ()) -> DataFrame:
        """Return the records of Spark's Kafka source with the event columns added. also: further columns to keep."""
        for schema_id, problem in self.incompatible_ids().items():
            LOG.warning("records with schema id %d are dead letters: %s", schema_id, problem)
        framed = records.select(
            *(col(name).alias(column) for column, name in self.record_columns.items()),
            *also,
            substring(col("value"), 1, HEADER_BYTES).alias(HEADER),
        )
        decoded = framed.select("*", *(self._payload(reader) for reader in self.readers))
        events = decoded.select("*", self._event_type(), *map(self._shared, self.shared_fields))
        return with_short_names(events, self.readers).withColumn(REASON, self._reason())

    def folded_ids(self, reader: RecordSchema) -> tuple[int, ...]:
        """Return the schema ids of a reader's event type whose records can be read exactly."""
        return tuple(i for i, found in self._comparisons(reader).items() if found.problem is None)

    def incompatible_ids(self) -> dict[int, str]:
        """Return the schema ids whose records cannot be read exactly, with the reason: of the readers' event types, or of none.

        An unusable schema of another event type is none of them: its records are not read.
        """
        unnamed = {i: str(writer.problem) for i, writer in self.schema_ids.writers.items() if not writer.name}
        return unnamed | {
            i: f"{reader.name}: {found.problem}"
            for reader in self.readers
            for i, found in self._comparisons(reader).items()
            if found.problem is not None
        }

    def _comparisons(self, reader: RecordSchema) -> dict[int, Comparison]:
        writers = self.schema_ids.writers.items()
        return {i: comparison_of(writer, reader) for i, writer in writers if writer.name == reader.name}

    @property
    def _active(self) -> tuple[RecordSchema, ...]:
        """The readers whose columns have a type: those with a known schema id."""
        return tuple(reader for reader in self.readers if self.folded_ids(reader))

    def _payload(self, reader: RecordSchema) -> Column:
        payload = expr(f"substring(`{VALUE}`, {HEADER_BYTES + 1})")
        decoded = lit(None)
        for schema_id, comparison in self._comparisons(reader).items():
            if comparison.problem is not None:
                continue
            writer = self.schema_ids.writers[schema_id]
            branch = event_column(payload, writer, reader, comparison)
            decoded = when(col(HEADER) == lit(header(schema_id)), branch).otherwise(decoded)
        return decoded.alias(type_column(reader.name))

    def _event_type(self) -> Column:
        name = lit(None).cast("string")
        for reader in self._active:
            name = when(
                col(f"{type_column(reader.name)}.occurredOn").isNotNull(), lit(reader.name)
            ).otherwise(name)
        return name.alias(EVENT_TYPE)

    def _shared(self, name: str) -> Column:
        present = [col(f"{type_column(reader.name)}.{name}") for reader in self._active]
        return coalesce(*present, lit(None)).alias(name)

    def _reason(self) -> Column:
        folded = [header(i) for reader in self.readers for i in self.folded_ids(reader)]
        incompatible = [header(i) for i in self.incompatible_ids()]
        other_types = [
            header(i) for i in self.schema_ids.writers if header(i) not in {*folded, *incompatible}
        ]
        rejected = self.schema_ids.rejected
        unknown: Column = lit(Reason.UNKNOWN_SCHEMA_ID.value)
        if self.schema_ids.stop_at_unknown:
            unknown = when(is_rejected(col(HEADER), rejected), unknown).otherwise(
                expr(f"raise_error(concat('{UNKNOWN_SCHEMA_ID}=', hex(`{HEADER}`)))").cast("string")
            )
        rejected_once = {i: found for i, found in rejected.items() if i in self.schema_ids.writers}
        framed = (length(col(HEADER)) == HEADER_BYTES) & (substring(col(HEADER), 1, 1) == lit(bytes([MAGIC])))
        return (
            when(col(KEY).isNull(), Reason.NULL_KEY.value)
            .when(col(VALUE).isNull(), Reason.NULL_VALUE.value)
            .when(~framed, Reason.WRONG_MAGIC.value)
            .when(is_rejected(col(HEADER), rejected_once), Reason.UNKNOWN_SCHEMA_ID.value)
            .when(col(HEADER).isin(incompatible), Reason.INCOMPATIBLE_SCHEMA.value)
            .when(col(HEADER).isin(folded) & col(EVENT_TYPE).isNull(), Reason.UNDECODABLE_PAYLOAD.value)
            .when(~col(HEADER).isin(folded + other_types), unknown)
            .when(text_is_invalid(self._active), Reason.INVALID_TEXT.value)
            .when(time_is_out_of_range(self._active), Reason.TIME_OUT_OF_RANGE.value)
            .when(self._key_is_invalid(), Reason.INVALID_KEY.value)
            .when(
                col(HEADER).isin(folded) & is_in_wrong_partition(self.partitions),
                Reason.WRONG_PARTITION.value,
            )
            .when(is_created_in_future(self._active), Reason.CREATED_IN_FUTURE.value)
            .when(lifetime_has_ended(self._active), Reason.LIFETIME_ENDED.value)
        )

    def _key_is_invalid(self) -> Column:
        invalid = key_is_invalid(self._active)
        # Without an active reader, no column that the key may use has its type.
        if self.record_key is None or not self._active:
            return invalid
        return invalid | is_not_record_key(column_of(self.record_key))


def is_undecided(header_of: Column, schema_ids: SchemaIds) -> Column:
    """Return whether a framed record with this header is neither of a known id nor rejected."""
    known = header_of.isin([header(schema_id) for schema_id in schema_ids.writers])
    return ~(known | is_rejected(header_of, schema_ids.rejected))


def is_rejected(header_of: Column, rejections: Mapping[int, Rejection]) -> Column:
    """Return whether the record with this header, at the columns PARTITION and OFFSET, is rejected."""
    ids: dict[str, list[bytes]] = {}
    for schema_id, rejection in rejections.items():
        # Ids that were looked up together have the same offsets.
        ids.setdefault(_condition(rejection), []).append(header(schema_id))
    found = lit(False)  # noqa: FBT003 - a column
    for condition, headers in ids.items():
        found = found | (header_of.isin(headers) & expr(condition))
    return found


def _condition(rejection: Rejection) -> str:
    if rejection.is_open:
        return "true"
    ends = (
        f"`{PARTITION}` = {partition} AND `{OFFSET}` < {end}"
        for partition, end in sorted(rejection.until.items())
    )
    return " OR ".join(ends) or "false"


def good_events(
    events: DataFrame, condition: Column | None = None, failure: Column | None = None
) -> DataFrame:
    """Return the events that a read model folds: decodable, of one of its types, and satisfying the condition, if one is given.

    failure: which expression of the declaration fails for an event, so that it is a dead letter; null: none.
    """
    # One expression instead of two conditions, which Spark may evaluate in any order. A record with an unknown schema id
    # has no event type either, and only evaluating its reason stops the query, so the reason must come first.
    not_folded = coalesce(col(REASON), when(col(EVENT_TYPE).isNull(), lit(OTHER_TYPE)))
    if failure is not None:
        not_folded = coalesce(not_folded, failure)
    if condition is not None:
        not_folded = coalesce(not_folded, when(~coalesce(condition, lit(False)), lit(EXCLUDED)))  # noqa: FBT003 - a column
    return events.where(not_folded.isNull())


def undecodable(events: DataFrame) -> DataFrame:
    """Return the records that cannot be folded: key, value, partition, offset and reason, and what fails.

    events: decoded records with the column FAILURE: the declarations that fail for an event, and which expression; null: none.
    """
    failed = when(col(FAILURE).isNotNull(), Reason.FAILED_EXPRESSION.value)
    # One expression: a record with an unknown schema id stops the query when its reason is computed, which must come first.
    bad = events.where(coalesce(col(REASON), failed).isNotNull())
    return bad.select(
        *(col(column).alias(name) for column, name in RECORD_COLUMNS.items()),
        coalesce(col(REASON), failed).alias("reason"),
        when(col(REASON).isNull(), col(FAILURE)).alias(FAILURE),
    )
