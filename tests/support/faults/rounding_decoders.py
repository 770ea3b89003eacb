"""Decoders that round a decimal to one digit, in place of the right ones: of Spark, and of the replay without Spark."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from include.declarations.event_types.event_columns import type_column
from include.kafka.avro.avro_types import AvroType
from include.kafka.record_schema import RecordSchema
from include.replay import batch_decoding
from include.replay.avro import avro_columns
from include.replay.avro.avro_cursor import Cursor
from spark_jobs.folding.decode import EventDecoder


def round_without_spark(patch: pytest.MonkeyPatch, field: str) -> None:
    """Round a field of all event types in the replay."""
    column_of = avro_columns.column_of

    def rounding(written: AvroType, wanted: AvroType) -> avro_columns.Column:
        read = column_of(written, wanted)

        def rounded(cursor: Cursor) -> pa.StructArray:
            events = read(cursor)
            place = events.type.get_field_index(field)
            values = [
                None if value is None else value.quantize(Decimal("0.1"))
                for value in events.field(field).to_pylist()
            ]
            columns = events.flatten()
            columns[place] = pa.array(values, events.type.field(place).type)
            return pa.StructArray.from_arrays(columns, fields=list(events.type))

        return rounded

    patch.setattr(batch_decoding, "column_of", rounding)


def round_in_spark(patch: pytest.MonkeyPatch, event_type: str, field: str) -> None:
    """Round a field of one event type in Spark's jobs."""
    payload = EventDecoder._payload

    def rounding(decoder: EventDecoder, reader: RecordSchema) -> Column:
        found = payload(decoder, reader)
        if reader.name != event_type:
            return found
        rounded = F.round(found.getField(field), 1).cast("decimal(18,2)")
        return found.withField(field, rounded).alias(type_column(event_type))

    patch.setattr(EventDecoder, "_payload", rounding)
