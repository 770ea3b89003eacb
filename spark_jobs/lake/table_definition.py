"""What a Delta table of the lake must look like, and its creation and changes: columns, comments, properties, layout."""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import lit
from pyspark.sql.types import DataType, StructField, StructType

from include.errors import FoldlakeError
from include.lake.tagged_table import SECONDS_PER_HOUR

LOG = logging.getLogger(__name__)


class LakeTableError(FoldlakeError):
    """Foldlake cannot write to a table in the lake."""


class AvroField(Protocol):
    """A declared column."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def avro_type(self) -> str | dict[str, Any] | list[Any]:
        """Its Avro type."""

    @property
    def doc(self) -> str:
        """Its comment."""


def column_types(spark: SparkSession, fields: Iterable[AvroField]) -> StructType:
    """Return the columns for these fields, with their comments; Spark maps the Avro types. Every column may be null."""
    fields = tuple(fields)
    # Each field in a record of its own: two of them may define the same named type.
    columns = [from_avro(lit(None).cast("binary"), _record_of(field)).alias(field.name) for field in fields]
    types = spark.range(0).select(*columns).schema

    def column(field: AvroField) -> StructField:
        record: Any = types[field.name].dataType
        return StructField(field.name, record[field.name].dataType, metadata={"comment": field.doc})

    return StructType(list(map(column, fields)))


def _record_of(field: AvroField) -> str:
    fields = [{"name": field.name, "type": field.avro_type}]
    return json.dumps({"type": "record", "name": "Columns", "fields": fields})


@dataclass(frozen=True)
class TableDefinition:
    """A Delta table as it is declared.

    owner: the declaration, such as "read model balance", for errors. remedy: what to do when the type of a column has changed.
    columns: with their comments. retention_h: how long replaced files and the history are retained.
    clustered_by, partitioned_by: one column at most each, or "".
    """

    owner: str
    columns: StructType
    comment: str
    retention_h: float
    remedy: str
    clustered_by: str = ""
    partitioned_by: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        retention = f"interval {round(self.retention_h * SECONDS_PER_HOUR)} seconds"
        return {
            # delta-rs cannot read tables with deletion vectors.
            "delta.enableDeletionVectors": "false",
            "delta.logRetentionDuration": retention,
            "delta.deletedFileRetentionDuration": retention,
        }


def ensure_table(spark: SparkSession, path: str, definition: TableDefinition) -> None:
    """Create the table, or update its columns, comments and properties to match the definition.

    Raises LakeTableError when the type of a column differs from the declared one.
    """
    if not DeltaTable.isDeltaTable(spark, path):
        create_table(spark, path, definition)
        return
    existing = spark.read.format("delta").load(path).schema
    for index, column in enumerate(definition.columns):
        if column.name in existing.names:
            _check(spark, path, definition, column, existing[column.name])
        else:
            _add(spark, path, column, after=definition.columns[index - 1].name if index else "")
    _set_properties(spark, path, definition.properties)


def create_table(spark: SparkSession, path: str, definition: TableDefinition) -> None:
    """Create a table that does not exist; one that another process creates meanwhile is left as it is."""
    _remove_uncommitted(spark, path)
    builder = (
        DeltaTable.createIfNotExists(spark)
        .location(path)
        .comment(definition.comment)
        .addColumns(definition.columns)
    )
    if definition.clustered_by:
        builder = builder.clusterBy(definition.clustered_by)
    if definition.partitioned_by:
        builder = builder.partitionedBy(definition.partitioned_by)
    for name, value in definition.properties.items():
        builder = builder.property(name, value)
    builder.execute()
    LOG.info("created the table %s", path)


def _check(
    spark: SparkSession, path: str, definition: TableDefinition, wanted: StructField, existing: StructField
) -> None:
    if wanted.dataType != existing.dataType:
        raise LakeTableError(
            f"{path} has column {wanted.name} as {_type_name(existing.dataType)}, but {definition.owner} "
            f"declares {_type_name(wanted.dataType)}. {definition.remedy}"
        )
    comment = wanted.metadata.get("comment", "")
    if comment != existing.metadata.get("comment", ""):
        _alter(spark, path, f"CHANGE COLUMN `{wanted.name}` COMMENT {_quoted(comment)}")


def _add(spark: SparkSession, path: str, column: StructField, after: str) -> None:
    comment = _quoted(column.metadata.get("comment", ""))
    place = f"AFTER `{after}`" if after else "FIRST"
    _alter(
        spark,
        path,
        f"ADD COLUMNS (`{column.name}` {_type_name(column.dataType)} COMMENT {comment} {place})",
    )
    LOG.info("added column %s to %s: it is null in existing rows", column.name, path)


def _set_properties(spark: SparkSession, path: str, wanted: dict[str, str]) -> None:
    existing: dict[str, str] = DeltaTable.forPath(spark, path).detail().collect()[0].properties
    changed = {name: value for name, value in wanted.items() if existing.get(name) != value}
    if changed:
        pairs = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in changed.items())
        _alter(spark, path, f"SET TBLPROPERTIES ({pairs})")


def _alter(spark: SparkSession, path: str, change: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{path}` {change}")


def _remove_uncommitted(spark: SparkSession, path: str) -> None:
    """Remove the log of a table whose creation was killed before the first commit.

    Delta treats such a folder neither as a table nor as empty, so it can neither read nor create the table. A log with
    any visible file is kept.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
    log = jvm.org.apache.hadoop.fs.Path(f"{path}/_delta_log")
    files = log.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001 - as above
    if not files.exists(log):
        return
    if any(f.isFile() and not f.getPath().getName().startswith(".") for f in files.listStatus(log)):
        return
    LOG.warning(
        "removed the log of %s, which had no commit: a job was killed while it created the table", path
    )
    files.delete(log, True)  # noqa: FBT003 - a Java method; recursive


def _type_name(data_type: DataType) -> str:
    return data_type.simpleString()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
