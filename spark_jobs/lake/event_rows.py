"""The Delta table of an event table: its columns, and the rows for the records of its topic."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from delta.tables import DeltaTable
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, date_format, lit, when
from pyspark.sql.types import StructType

from include.declarations.event_table import (
    EVENT_TIME,
    MONTH_COLUMN,
    OFFSET_COLUMN,
    PARTITION_COLUMN,
    AppendedTable,
    TableColumn,
)
from include.declarations.event_types.event_columns import EVENT_TYPE as TYPE
from include.declarations.event_types.event_columns import OFFSET, PARTITION, type_column
from include.declarations.topic_tables import EVENT_TYPE
from include.lake.tags import AppendTag
from spark_jobs.folding.decode import REASON
from spark_jobs.lake.spark_table import SparkTable
from spark_jobs.lake.table_definition import TableDefinition, column_types

# What a record is: a row, of another event type, or else the reason why it cannot be decoded.
KIND = "record:kind"
ROW, OTHER_TYPE = "row", "other event type"


@dataclass(frozen=True)
class EventDeltaTable(SparkTable[AppendTag]):
    """The Delta table of an event table, partitioned by month."""

    declared: AppendedTable

    @property
    def name(self) -> str:
        """The event table's name."""
        return self.declared.name

    @property
    def event_types(self) -> tuple[str, ...]:
        """The event types of which each event is a row."""
        return tuple(reader.name for reader in self.declared.events.readers)

    @cached_property
    def columns(self) -> StructType:
        """The declared columns, with their comments."""
        return column_types(self.spark, self.declared.columns)

    @property
    def definition(self) -> TableDefinition:
        """The columns, comments, properties and layout."""
        return TableDefinition(
            f"{' or '.join(self.event_types)} of event table {self.name}",
            self.columns,
            self.declared.doc or f"The events of type {' and '.join(self.event_types)}, one row each.",
            self.retention_h,
            f"The type of a field cannot change. Hint: give the field another name; or remove {self.path} and run "
            f"`./foldlake compact {self.name}`, which appends all events that are in {self.declared.source_topic}.",
            partitioned_by=MONTH_COLUMN,
        )

    def read_tag(self, text: str | None) -> AppendTag | None:
        """Read a commit's `userMetadata`."""
        return AppendTag.from_json(text)

    def has_rows(self) -> bool:
        """Return whether the table exists and has any row."""
        return DeltaTable.isDeltaTable(self.spark, self.path) and not (
            self.spark.read.format("delta").load(self.path).isEmpty()
        )

    @contextmanager
    def classified(self, decoded: DataFrame) -> Iterator[DataFrame]:
        """Yield a row for each record, with the column KIND in addition to the table's; the columns of a record that is no row are null.

        decoded: the records as EventDecoder decodes them. What is yielded is on disk: it is read twice, and records are decoded once.
        """
        # Without any schema of an event type in the registry, none of its records is decoded, and its struct has no type.
        typed = [
            one
            for one in self.event_types
            if isinstance(decoded.schema[type_column(one)].dataType, StructType)
        ]
        is_event = col(REASON).isNull() & col(TYPE).isin(typed)
        kind = when(col(REASON).isNotNull(), col(REASON)).when(is_event, ROW).otherwise(OTHER_TYPE)

        def of_event(column: TableColumn) -> Column:
            values = [
                when(col(TYPE) == lit(one), col(f"{type_column(one)}.{name}"))
                for one, name in column.fields.items()
                if one in typed
            ]
            return when(is_event, F.coalesce(*values)) if values else lit(None)

        times = [when(col(TYPE) == lit(one), col(f"{type_column(one)}.{EVENT_TIME}")) for one in typed]
        time = F.coalesce(*times) if times else lit(None)
        added = {
            EVENT_TYPE.name: when(is_event, col(TYPE)),
            MONTH_COLUMN: when(is_event, date_format(time.cast("timestamp"), "yyyy-MM")),
            PARTITION_COLUMN: col(PARTITION),
            OFFSET_COLUMN: col(OFFSET),
        }
        columns = [
            (of_event(column) if column.fields else added[column.name])
            .cast(self.columns[column.name].dataType)
            .alias(column.name)
            for column in self.declared.columns
        ]
        # One task for each month writes one file. Without this, every task would write one for each month that it has.
        rows = decoded.select(*columns, kind.alias(KIND)).repartition(MONTH_COLUMN)
        rows.persist(StorageLevel.DISK_ONLY)
        try:
            yield rows
        finally:
            rows.unpersist()

    def append(self, rows: DataFrame, tag: AppendTag, application_id: str, version: int) -> None:
        """Append the rows among classified records, in one commit with a tag.

        The same version of the same application is appended only once, however often this method is called, by any process.
        """
        (
            rows.where(col(KIND) == ROW)
            .select(*self.columns.names)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", application_id)
            .option("txnVersion", str(version))
            .option("userMetadata", tag.to_json())
            .save(self.path)
        )

    def restart(self, tag: AppendTag) -> None:
        """Remove all rows, in one commit with a tag, to append all events again."""
        empty = self.spark.createDataFrame([], self.columns)
        empty.write.format("delta").mode("overwrite").option("userMetadata", tag.to_json()).save(self.path)


def count_kinds(rows: DataFrame) -> Mapping[str, int]:
    """Return the number of classified records of each kind."""
    return {
        found[KIND]: found["count"]
        for found in rows.groupBy(KIND).agg(F.count(lit(1)).alias("count")).collect()
    }
