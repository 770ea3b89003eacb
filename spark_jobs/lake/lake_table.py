"""The Delta table of a read model: creates it, adds the model's new fields, and replaces or merges content in tagged commits."""

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import lit
from pyspark.sql.types import DataType, StructField, StructType

from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.lake.tables import KEY_COLUMN, CommitTag, table_fields
from spark_jobs.runtime.session import session_settings

LOG = logging.getLogger(__name__)

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"

# One of the newest commits almost always has a tag; reading a long history takes seconds.
NEWEST_COMMITS = 20
SECONDS_PER_HOUR = 3600

# Operations that never change a table's content.
CONTENT_PRESERVING_OPERATIONS = frozenset(
    {
        "ADD COLUMNS",
        "CHANGE COLUMN",
        "CLUSTER BY",
        "CREATE TABLE",
        "OPTIMIZE",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPDATE SCHEMA",
        "UPGRADE PROTOCOL",
        "VACUUM END",
        "VACUUM START",
    }
)


class LakeTableError(FoldlakeError):
    """Foldlake cannot write to a table in the lake."""


@dataclass(frozen=True)
class TaggedCommit:
    """The newest commit with a tag of Foldlake.

    overwritten_by: the operation of a newer, untagged commit that changed the content; empty if there is none.
    """

    tag: CommitTag
    version: int
    committed_at: datetime
    overwritten_by: str = ""


def column_types(spark: SparkSession, model: ReadModel) -> StructType:
    """Return the columns of a read model's table, with their comments; Spark maps the Avro types."""
    fields = table_fields(model)
    record = {
        "type": "record",
        "name": "Columns",
        "fields": [{"name": field.name, "type": field.avro_type} for field in fields],
    }
    empty = spark.range(0).select(from_avro(lit(None).cast("binary"), json.dumps(record)).alias("columns"))
    types: Any = empty.schema["columns"].dataType
    return StructType(
        [
            StructField(field.name, types[field.name].dataType, metadata={"comment": field.doc})
            for field in fields
        ]
    )


@dataclass(frozen=True)
class LakeTable:
    """A Delta table with a read model's columns, clustered by key.

    spark: the session that reads and writes the table; each micro-batch has its own.
    retention_h: how long replaced files and the history are retained.
    """

    spark: SparkSession
    model: ReadModel
    path: str
    retention_h: float

    @cached_property
    def columns(self) -> StructType:
        """The columns that the model declares, with their comments."""
        return column_types(self.spark, self.model)

    @property
    def _properties(self) -> dict[str, str]:
        retention = f"interval {round(self.retention_h * SECONDS_PER_HOUR)} seconds"
        return {
            # delta-rs cannot read tables with deletion vectors.
            "delta.enableDeletionVectors": "false",
            "delta.logRetentionDuration": retention,
            "delta.deletedFileRetentionDuration": retention,
        }

    def ensure(self) -> None:
        """Create the table, or update its columns, comments and properties to match the model and the settings.

        Raises LakeTableError when the type of a column differs from that of the model's field.
        """
        if not DeltaTable.isDeltaTable(self.spark, self.path):
            remove_uncommitted(self.spark, self.path)
            self._create()
            return
        existing = self.spark.read.format("delta").load(self.path).schema
        for index, column in enumerate(self.columns):
            if column.name in existing.names:
                self._check(column, existing[column.name])
            else:
                self._add(column, self.columns[index - 1].name)
        self._set_properties()

    def newest_commit(self) -> TaggedCommit | None:
        """Return the newest commit with a tag of Foldlake, or None if there is none."""
        return newest_commit(self.spark, self.path)

    def overwrite(self, states: DataFrame, tag: CommitTag, files: int) -> None:
        """Replace the whole content in one commit, as `files` files clustered by key."""
        # Sorted as by OPTIMIZE, so that OPTIMIZE need not rewrite a large table.
        clustered = states.select(*self.columns.names).repartitionByRange(files, KEY_COLUMN)
        (
            clustered.sortWithinPartitions(KEY_COLUMN)
            .write.format("delta")
            .mode("overwrite")
            # Replace every row; an overwrite without a condition would remove the table's clustering.
            .option("replaceWhere", "true")
            .option("userMetadata", tag.to_json())
            .save(self.path)
        )

    def mark(self, tag: CommitTag) -> None:
        """Commit a tag without files: the content is unchanged, but its tag has newer offsets."""
        with session_settings(self.spark, {USER_METADATA: tag.to_json()}):
            DeltaTable.forPath(self.spark, self.path).delete("false")

    def merge(self, changes: DataFrame, tag: CommitTag, application_id: str, batch: int) -> None:
        """Merge the newest records of some keys (see changelog_batch.newest_records) in one commit.

        A record replaces the table's row unless its event_count is lower. The same batch of the same application is merged
        only once, however often this method is called.
        """
        existing = self.spark.read.format("delta").load(self.path).schema.names
        # A column that the model no longer declares becomes null.
        values: dict[str, str | Column] = {
            f"`{n}`": f"changes.`{n}`" if n in self.columns.names else "null" for n in existing
        }
        settings = {TXN_APP_ID: application_id, TXN_VERSION: str(batch), USER_METADATA: tag.to_json()}
        with session_settings(self.spark, settings):
            (
                DeltaTable.forPath(self.spark, self.path)
                .alias("stored")
                .merge(changes.alias("changes"), f"stored.{KEY_COLUMN} = changes.{KEY_COLUMN}")
                .whenMatchedDelete("changes.deleted")
                .whenMatchedUpdate(
                    "changes.after_deletion or changes.event_count >= stored.event_count", set=values
                )
                .whenNotMatchedInsert("not changes.deleted", values=values)
                .execute()
            )

    def _create(self) -> None:
        builder = (
            DeltaTable.createIfNotExists(self.spark)
            .location(self.path)
            .comment(f"The read model {self.model.name}, one row per key.")
            .addColumns(self.columns)
            .clusterBy(KEY_COLUMN)
        )
        for name, value in self._properties.items():
            builder = builder.property(name, value)
        builder.execute()
        LOG.info("created the table %s", self.path)

    def _check(self, wanted: StructField, existing: StructField) -> None:
        if wanted.dataType != existing.dataType:
            raise LakeTableError(
                f"{self.path} has column {wanted.name} as {_type_name(existing.dataType)}, but read model {self.model.name} "
                f"declares {_type_name(wanted.dataType)}. The type of a state field cannot change: declare a field "
                "with another name instead."
            )
        comment = wanted.metadata.get("comment", "")
        if comment != existing.metadata.get("comment", ""):
            self._alter(f"CHANGE COLUMN `{wanted.name}` COMMENT {_quoted(comment)}")

    def _add(self, column: StructField, after: str) -> None:
        comment = _quoted(column.metadata.get("comment", ""))
        self._alter(
            f"ADD COLUMNS (`{column.name}` {_type_name(column.dataType)} COMMENT {comment} AFTER `{after}`)"
        )
        LOG.info("added column %s to %s: it is null in existing rows", column.name, self.path)

    def _set_properties(self) -> None:
        existing: dict[str, str] = DeltaTable.forPath(self.spark, self.path).detail().collect()[0].properties
        changed = {name: value for name, value in self._properties.items() if existing.get(name) != value}
        if changed:
            pairs = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in changed.items())
            self._alter(f"SET TBLPROPERTIES ({pairs})")

    def _alter(self, change: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.path}` {change}")


def remove_uncommitted(spark: SparkSession, path: str) -> None:
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


def newest_commit(spark: SparkSession, path: str) -> TaggedCommit | None:
    """Return the newest commit of a table with a tag of Foldlake; None if there is no such commit or no table.

    If a newer commit without a tag has changed the content, `overwritten_by` names it.
    """
    if not DeltaTable.isDeltaTable(spark, path):
        return None
    table = DeltaTable.forPath(spark, path)
    for limit in (NEWEST_COMMITS, None):
        others = ""
        columns = ("version", "timestamp", "operation", "userMetadata")
        for commit in table.history(limit).select(*columns).orderBy("version", ascending=False).collect():
            tag = CommitTag.from_json(commit.userMetadata)
            if tag is not None:
                return TaggedCommit(tag, commit.version, commit.timestamp.astimezone(UTC), others)
            if commit.operation not in CONTENT_PRESERVING_OPERATIONS:
                others = others or f"{commit.operation} in version {commit.version}"
    return None


def _type_name(data_type: DataType) -> str:
    return data_type.simpleString()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
