"""Reduces changelog records to the newest record of each key, in the columns of its table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import coalesce, col, expr, lit, substring, when
from pyspark.sql.types import StructType

from include.declarations.read_model import KEY_COLUMN, ReadModel
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import JOB_PATIENCE_S, SchemaRegistry
from include.kafka.wire_format import HEADER_BYTES, header
from include.position import Offsets
from include.settings import KafkaConnection, RegistryConnection
from spark_jobs.folding.kafka_source import topic_records
from spark_jobs.folding.logical_conversion import is_readable

# Columns of `newest_records` beside those of the table.
DELETED = "record:deleted"
AFTER_DELETION = "record:after_deletion"
RECORDS = "record:records"
# Columns of a part of the computation.
OFFSET = "record:offset"
DELETION = "record:deletion"
RECORD_KEY = "record:key"
NEWEST = "record:newest"


@dataclass(frozen=True)
class RecordCounts:
    """Counts for a part of a changelog.

    records: all records. unreadable: records that are not state records. states, deletions: keys, by their newest record.
    """

    records: int = 0
    unreadable: int = 0
    states: int = 0
    deletions: int = 0

    def __str__(self) -> str:
        """Return the counts in words."""
        return f"{self.records:,} records read, {self.states:,} keys merged, {self.deletions:,} deleted"

    def __add__(self, other: "RecordCounts") -> "RecordCounts":
        """Return the sum of the counts of two parts."""
        return RecordCounts(
            self.records + other.records,
            self.unreadable + other.unreadable,
            self.states + other.states,
            self.deletions + other.deletions,
        )


@dataclass(frozen=True)
class Changelog:
    """The changelog of a version, as Spark reads it.

    registry: the one that has the schemas of its records. columns: those of the read model's table.
    """

    kafka: KafkaConnection
    registry: RegistryConnection
    model: ReadModel
    topic: str
    columns: StructType

    @cached_property
    def _registry(self) -> SchemaRegistry:
        return SchemaRegistry(self.registry, patience_s=JOB_PATIENCE_S)

    def read(self, spark: SparkSession, until: Offsets) -> DataFrame:
        """Return the newest record of each key below these end offsets (see `newest_records`)."""
        return self.newest(topic_records(spark, self.kafka, self.topic, until))

    def newest(self, records: DataFrame) -> DataFrame:
        """Return the newest record of each key among some of its records."""
        return newest_records(self.model, self.columns, self._registry.schema_ids(self.topic), records)

    def decoded(self, records: DataFrame, *kept: str) -> DataFrame:
        """Return the columns of some records (key, value, offset), and those to keep; the key is null if a record cannot be read."""
        writers = state_writers(self.model, self._registry.schema_ids(self.topic))
        return _decoded(records, writers, self.columns, *kept)


def newest_records(
    model: ReadModel, columns: StructType, writers: Mapping[int, RecordSchema], records: DataFrame
) -> DataFrame:
    """Return one row per key among a changelog's records (columns of Spark's Kafka source).

    The newest record of a key is the one with the highest event_count since its last tombstone: after a kill, the driver
    repeats records and so appends lower counts after higher ones.

    Columns: those of the table, DELETED (the newest record is a tombstone, and the state's columns are null), AFTER_DELETION (there was
    a tombstone, so the table's row for the key is obsolete), and RECORDS, the number of the key's changelog records. The row with a null
    key represents all unreadable records.

    Args:
        model: the read model of the records.
        columns: those of its table; a field that a record's schema lacks is null.
        writers: schema id -> the schema with which state records were written; those of other records, and those that cannot be read, are left out.
        records: key, value, partition and offset.
    """
    writers = state_writers(model, writers)
    fields = [name for name in columns.names if name != KEY_COLUMN]
    of_key = Window.partitionBy(KEY_COLUMN)
    decoded = _decoded(records, writers, columns).select(
        "*",
        F.max(when(col(DELETED), col(OFFSET))).over(of_key).alias(DELETION),
        F.count(lit(1)).over(of_key).alias(RECORDS),
    )
    current = decoded.where(col(DELETION).isNull() | (col(OFFSET) >= col(DELETION)))
    newest = F.max_by(
        F.struct(*fields, DELETED, DELETION, RECORDS), F.struct(~col(DELETED), "event_count", OFFSET)
    )
    return (
        current.groupBy(KEY_COLUMN)
        .agg(newest.alias(NEWEST))
        .select(
            KEY_COLUMN,
            *(f"{NEWEST}.{name}" for name in fields),
            f"{NEWEST}.{DELETED}",
            col(f"{NEWEST}.{DELETION}").isNotNull().alias(AFTER_DELETION),
            f"{NEWEST}.{RECORDS}",
        )
    )


def state_writers(model: ReadModel, schemas: Mapping[int, RecordSchema]) -> dict[int, RecordSchema]:
    """Return those of some schemas, by their ids, that a state record can be read with."""
    name = model.state_schema.full_name
    return {i: schema for i, schema in schemas.items() if schema.full_name == name and is_readable(schema)}


def count_records(newest: DataFrame) -> RecordCounts:
    """Return the counts for the result of `newest_records`."""
    readable = col(KEY_COLUMN).isNotNull()
    row = newest.agg(
        coalesce(F.sum(RECORDS), lit(0)).alias("records"),
        coalesce(F.sum(when(~readable, col(RECORDS))), lit(0)).alias("unreadable"),
        F.count(when(readable & ~col(DELETED), lit(1))).alias("states"),
        F.count(when(readable & col(DELETED), lit(1))).alias("deletions"),
    ).collect()[0]
    return RecordCounts(row.records, row.unreadable, row.states, row.deletions)


def readable(newest: DataFrame) -> DataFrame:
    """Keep the rows with a key."""
    return newest.where(col(KEY_COLUMN).isNotNull())


def _decoded(
    records: DataFrame, writers: Mapping[int, RecordSchema], columns: StructType, *kept: str
) -> DataFrame:
    """Return key, the table's other columns, OFFSET, DELETED, and columns of the records to keep; the key is null if the record cannot be read."""
    payload = expr(f"substring(value, {HEADER_BYTES + 1})")
    framed = records.select(
        col("key").cast("string").alias(RECORD_KEY),
        col("offset").alias(OFFSET),
        col("value").isNull().alias(DELETED),
        *kept,
        *(
            when(
                substring(col("value"), 1, HEADER_BYTES) == lit(header(schema_id)),
                from_avro(payload, writer.text, {"mode": "PERMISSIVE"}),
            ).alias(_written_with(schema_id))
            for schema_id, writer in writers.items()
        ),
    )
    fields = [
        _field(writers, column.name).cast(column.dataType).alias(column.name)
        for column in columns
        if column.name != KEY_COLUMN
    ]
    return framed.select(RECORD_KEY, OFFSET, DELETED, *kept, *fields).select(
        when(col(DELETED) | col("event_count").isNotNull(), col(RECORD_KEY)).alias(KEY_COLUMN),
        OFFSET,
        DELETED,
        *kept,
        *(column.name for column in columns if column.name != KEY_COLUMN),
    )


def _field(writers: Mapping[int, RecordSchema], name: str) -> Column:
    """Return a field, decoded with the schema that each record was written with; null if that schema lacks it."""
    decoded = [
        col(f"{_written_with(schema_id)}.{name}")
        for schema_id, writer in writers.items()
        if name in writer.fields
    ]
    return coalesce(*decoded, lit(None)) if decoded else lit(None)


def _written_with(schema_id: int) -> str:
    return f"record:written_with_{schema_id}"
