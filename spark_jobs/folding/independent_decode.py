"""Decodes events in Python workers, for staging, with the decoder of `include/replay/`."""

import gc
import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    VALUE,
    type_column,
)
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection
from include.replay.decoding import EventType, RecordDecoder, UnknownSchemaIdError
from spark_jobs.folding.decode import EventDecoder
from spark_jobs.folding.event_rules import is_not_record_key
from spark_jobs.folding.expressions.columns import column_of, with_short_names


def independently_decoded(records: DataFrame, decoder: EventDecoder) -> DataFrame:
    """Return the events among the records of Spark's Kafka source: the columns of `good_events(decoder.decode(records))`.

    The Python of the executors needs numpy, pyarrow and confluent-kafka.
    """
    present = [reader for reader in decoder.readers if decoder.folded_ids(reader)]
    record = [column for column in decoder.record_columns if column != VALUE]
    names = [*record, EVENT_TYPE, *(type_column(reader.name) for reader in present)]
    schema = decoder.decode(records).select(*names).schema
    ids = decoder.schema_ids
    task = DecodingTask(
        schema.json(),
        {
            schema_id: (ids.writers[schema_id].text, reader)
            for reader in present
            for schema_id in decoder.folded_ids(reader)
        },
        decoder.partitions,
        dict(ids.rejected),
        frozenset(ids.writers) if ids.stop_at_unknown else None,
    )
    decoded = records.select(*task.record_columns).mapInArrow(task, schema)
    shared = (
        coalesce(*(col(f"{type_column(r.name)}.{name}") for r in present)).alias(name)
        for name in decoder.shared_fields
    )
    events = with_short_names(decoded.select("*", *shared), decoder.readers)
    # The read model's own expression, as in its fold.
    return (
        events
        if decoder.record_key is None
        else events.where(~is_not_record_key(column_of(decoder.record_key)))
    )


@dataclass(frozen=True)
class DecodingTask:
    """What a Python worker does with its records.

    schema: the result's Spark schema as JSON. events: schema id -> (the writer's schema, the reader's). rejected: schema id -> the
    records that are rejected. known: the ids of all known schemas; any other one that is not rejected fails the task. None: none does.
    """

    schema: str
    events: Mapping[int, tuple[str, RecordSchema]]
    partitions: int
    rejected: Mapping[int, Rejection]
    known: AbstractSet[int] | None

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of the records, in the order of `RecordDecoder.decode`'s arguments; a record's time is needed only for event types with a lifetime."""
        has_lifetime = any(reader.lifetime is not None for _, reader in self.events.values())
        return ("key", "value", "partition", "offset", *(("timestamp",) if has_lifetime else ()))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of each batch of records."""
        # A schema that cannot be read fails the job; a record that cannot be read does not.
        decoder = self._decoder()
        schema = to_arrow_schema(StructType.fromJson(json.loads(self.schema)))
        # Thousands of rows at a time, none in a reference cycle: looking for cycles takes a tenth of the time.
        gc.disable()
        try:
            for batch in batches:
                columns = (_numbered(batch.column(name)).to_pylist() for name in self.record_columns)
                records = zip(*columns, strict=True)
                rows = [row for record in records if (row := self._row(decoder, record)) is not None]
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
        finally:
            gc.enable()

    def _row(self, decoder: RecordDecoder, record: tuple[Any, ...]) -> dict[str, Any] | None:
        key, value, partition, offset, *times = record
        time = times[0] if times else None
        try:
            name, event = decoder.decode(key, value, partition, offset, time)
        except UnknownSchemaIdError:
            raise
        except Exception:  # noqa: BLE001 - a payload that does not fit its schema raises anything
            return None
        found = {KEY: key, PARTITION: partition, OFFSET: offset, EVENT_TYPE: name, type_column(name): event}
        return {**found, TIMESTAMP: time} if times else found

    def _decoder(self) -> RecordDecoder:
        event_types = {
            number: EventType(RecordSchema.parse(text, "writer"), reader)
            for number, (text, reader) in self.events.items()
        }
        return RecordDecoder(event_types, self.partitions, self.rejected, self.known)


def _numbered(column: pa.Array) -> pa.Array:
    """Return the records' times as microseconds; other columns unchanged."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
