"""The Delta table of a read model: made, kept in step with the model's fields, replaced or merged into in tagged commits."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
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

LOG = logging.getLogger(__name__)

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"

# The newest commits almost always hold a tag; reading a long history takes seconds.
NEWEST_COMMITS = 20
SECONDS_PER_HOUR = 3600

# Operations that do not change a table's content, whoever runs them.
CONTENT_KEPT = frozenset(
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
    """A table in the lake is not one that Foldlake can write to."""


@dataclass(frozen=True)
class TaggedCommit:
    """The newest commit of ours.

    overwritten_by: the operation of a newer commit that is not ours and changed the content; empty when there is none.
    """

    tag: CommitTag
    version: int
    committed_at: datetime
    overwritten_by: str = ""


def column_types(spark: SparkSession, model: ReadModel) -> StructType:
    """Return the columns of a read model's table, with their comments: the types that Spark gives to Avro's."""
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
    """One Delta table with a read model's columns, clustered by key.

    spark: the session that reads and writes it; each micro-batch has one of its own.
    retention_h: how long replaced files and the history are kept.
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
            # delta-rs cannot read tables that have them.
            "delta.enableDeletionVectors": "false",
            "delta.logRetentionDuration": retention,
            "delta.deletedFileRetentionDuration": retention,
        }

    def ensure(self) -> None:
        """Make the table, or bring its columns, comments and properties up to date with the model and the settings.

        Raises LakeTableError when a column has another type than the model's field.
        """
        if not DeltaTable.isDeltaTable(self.spark, self.path):
            self._remove_uncommitted()
            self._create()
            return
        held = self.spark.read.format("delta").load(self.path).schema
        for index, column in enumerate(self.columns):
            if column.name in held.names:
                self._check(column, held[column.name])
            else:
                self._add(column, self.columns[index - 1].name)
        self._set_properties()

    def newest_commit(self) -> TaggedCommit | None:
        """Return the newest commit with a tag of ours, or None when there is none."""
        return newest_commit(self.spark, self.path)

    def overwrite(self, states: DataFrame, tag: CommitTag, files: int) -> None:
        """Replace the whole content in one commit, in `files` files that are clustered by key."""
        # Sorted as OPTIMIZE would, so that a large table need not be written twice.
        clustered = states.select(*self.columns.names).repartitionByRange(files, KEY_COLUMN)
        (
            clustered.sortWithinPartitions(KEY_COLUMN)
            .write.format("delta")
            .mode("overwrite")
            # Every row; an overwrite without a condition takes the clustering from the table.
            .option("replaceWhere", "true")
            .option("userMetadata", tag.to_json())
            .save(self.path)
        )

    def mark(self, tag: CommitTag) -> None:
        """Commit a tag and no files: the content is as it was, but more is known of it."""
        with session_settings(self.spark, {USER_METADATA: tag.to_json()}):
            DeltaTable.forPath(self.spark, self.path).delete("false")

    def merge(self, changes: DataFrame, tag: CommitTag, application_id: str, batch: int) -> None:
        """Merge the newest records of some keys (see changelog_batch.newest_records) in one commit.

        A record replaces what the table holds unless its event_count is lower. The same batch of the same application is
        merged once, however often this is called.
        """
        held = self.spark.read.format("delta").load(self.path).schema.names
        # A column that the model no longer has: nothing is known of it.
        values: dict[str, str | Column] = {
            f"`{n}`": f"changes.`{n}`" if n in self.columns.names else "null" for n in held
        }
        settings = {TXN_APP_ID: application_id, TXN_VERSION: str(batch), USER_METADATA: tag.to_json()}
        with session_settings(self.spark, settings):
            (
                DeltaTable.forPath(self.spark, self.path)
                .alias("held")
                .merge(changes.alias("changes"), f"held.{KEY_COLUMN} = changes.{KEY_COLUMN}")
                .whenMatchedDelete("changes.deleted")
                .whenMatchedUpdate(
                    "changes.after_deletion or changes.event_count >= held.event_count", set=values
                )
                .whenNotMatchedInsert("not changes.deleted", values=values)
                .execute()
            )

    def _remove_uncommitted(self) -> None:
        """Remove the log of a table that was never made: its creator was killed before the first commit.

        Delta takes such a folder for neither a table nor an empty one, and refuses both. A log with any file that is
        not hidden is left alone.
        """
        jvm: Any = self.spark._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
        log = jvm.org.apache.hadoop.fs.Path(f"{self.path}/_delta_log")
        files = log.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001 - as above
        if not files.exists(log):
            return
        if any(f.isFile() and not f.getPath().getName().startswith(".") for f in files.listStatus(log)):
            return
        LOG.warning("%s has a log without a commit, left by a killed job: removed", self.path)
        files.delete(log, True)  # noqa: FBT003 - Java's, and everything below it

    def _create(self) -> None:
        builder = (
            DeltaTable.createIfNotExists(self.spark)
            .location(self.path)
            .comment(f"The read model {self.model.name}, a row for each key.")
            .addColumns(self.columns)
            .clusterBy(KEY_COLUMN)
        )
        for name, value in self._properties.items():
            builder = builder.property(name, value)
        builder.execute()
        LOG.info("made the table %s", self.path)

    def _check(self, wanted: StructField, held: StructField) -> None:
        if wanted.dataType != held.dataType:
            raise LakeTableError(
                f"{self.path} has column {wanted.name} as {_type_name(held.dataType)}, but read model {self.model.name} "
                f"declares {_type_name(wanted.dataType)}. The type of a state field is never changed: declare a field "
                "with another name."
            )
        comment = wanted.metadata.get("comment", "")
        if comment != held.metadata.get("comment", ""):
            self._alter(f"CHANGE COLUMN `{wanted.name}` COMMENT {_quoted(comment)}")

    def _add(self, column: StructField, after: str) -> None:
        comment = _quoted(column.metadata.get("comment", ""))
        self._alter(
            f"ADD COLUMNS (`{column.name}` {_type_name(column.dataType)} COMMENT {comment} AFTER `{after}`)"
        )
        LOG.info("added column %s to %s: rows written before have null there", column.name, self.path)

    def _set_properties(self) -> None:
        held: dict[str, str] = DeltaTable.forPath(self.spark, self.path).detail().collect()[0].properties
        changed = {name: value for name, value in self._properties.items() if held.get(name) != value}
        if changed:
            pairs = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in changed.items())
            self._alter(f"SET TBLPROPERTIES ({pairs})")

    def _alter(self, change: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.path}` {change}")


def newest_commit(spark: SparkSession, path: str) -> TaggedCommit | None:
    """Return the newest commit of a table that carries a tag of ours; None when there is none, or no table.

    Whatever others committed after it is named in `overwritten_by` when it changed the content.
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
            if commit.operation not in CONTENT_KEPT:
                others = others or f"{commit.operation} in version {commit.version}"
    return None


@contextmanager
def session_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set settings of a session for as long as a block runs: Delta takes a commit's metadata from there only."""
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def _type_name(data_type: DataType) -> str:
    return data_type.simpleString()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
