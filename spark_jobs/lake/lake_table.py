"""The Delta table of a read model: creates it, adds the model's new fields, and replaces or merges content in tagged commits."""

from dataclasses import dataclass
from functools import cached_property

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import StructType

from include.declarations.read_model import ReadModel
from include.declarations.state_names import KEY_COLUMN
from include.lake.tables import CommitTag, table_fields
from spark_jobs.lake.changelog_batch import AFTER_DELETION, DELETED
from spark_jobs.lake.table_definition import TableDefinition, column_types, ensure_table
from spark_jobs.lake.tagged_commit import TaggedCommit, newest_commit
from spark_jobs.runtime.session import session_settings

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"


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
        return column_types(self.spark, table_fields(self.model))

    @property
    def name(self) -> str:
        """The read model's name."""
        return self.model.name

    def ensure(self) -> None:
        """Create the table, or update its columns, comments and properties to match the model and the settings.

        Raises LakeTableError when the type of a column differs from that of the model's field.
        """
        definition = TableDefinition(
            f"read model {self.model.name}",
            self.columns,
            f"The read model {self.model.name}, one row per key.",
            self.retention_h,
            "The type of a state field cannot change: declare a field with another name instead.",
            clustered_by=KEY_COLUMN,
        )
        ensure_table(self.spark, self.path, definition)

    def newest_commit(self) -> TaggedCommit[CommitTag] | None:
        """Return the newest commit with a tag of Foldlake, or None if there is none."""
        return newest_commit(self.spark, self.path, CommitTag.from_json)

    def with_all_columns(self, states: DataFrame) -> DataFrame:
        """Return states with all columns of the table; a field that their fold revision lacks is null."""
        return states.select(
            *(
                (col(column.name) if column.name in states.columns else lit(None))
                .cast(column.dataType)
                .alias(column.name)
                for column in self.columns
            )
        )

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
                .whenMatchedDelete(f"changes.`{DELETED}`")
                .whenMatchedUpdate(
                    f"changes.`{AFTER_DELETION}` or changes.event_count >= stored.event_count", set=values
                )
                .whenNotMatchedInsert(f"not changes.`{DELETED}`", values=values)
                .execute()
            )
