"""The Delta table of a read model: creates it, adds the model's new fields, and replaces or merges content in tagged commits."""

from dataclasses import dataclass
from functools import cached_property

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit
from pyspark.sql.types import StructType

from include.declarations.read_model import KEY_COLUMN, ReadModel
from include.lake.tables import table_fields
from include.lake.tags import CommitTag
from spark_jobs.lake.changelog_batch import AFTER_DELETION, DELETED
from spark_jobs.lake.spark_table import SparkTable
from spark_jobs.lake.table_definition import TableDefinition, column_types

TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"


@dataclass(frozen=True)
class LakeTable(SparkTable[CommitTag]):
    """A Delta table with a read model's columns, clustered by key."""

    model: ReadModel

    @cached_property
    def columns(self) -> StructType:
        """The columns that the model declares, with their comments."""
        return column_types(self.spark, table_fields(self.model))

    @property
    def name(self) -> str:
        """The read model's name."""
        return self.model.name

    @property
    def definition(self) -> TableDefinition:
        """The columns, comments, properties and layout."""
        return TableDefinition(
            f"read model {self.name}",
            self.columns,
            f"The read model {self.name}, one row per key.",
            self.retention_h,
            "The type of a state field cannot change: declare a field with another name instead.",
            clustered_by=KEY_COLUMN,
        )

    def read_tag(self, text: str | None) -> CommitTag | None:
        """Read a commit's `userMetadata`."""
        return CommitTag.from_json(text)

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
        with self.commits_tagged(tag):
            DeltaTable.forPath(self.spark, self.path).delete("false")

    def merge(self, changes: DataFrame, tag: CommitTag, application_id: str, batch: int) -> None:
        """Merge the newest records of some keys (see changelog_batch.newest_records) in one commit.

        A record replaces the table's row if it supersedes it (include.position.supersedes). The same batch of the same application is merged
        only once, however often this method is called.
        """
        existing = self.spark.read.format("delta").load(self.path).schema.names
        # A column that the model no longer declares becomes null.
        values: dict[str, str | Column] = {
            f"`{n}`": f"changes.`{n}`" if n in self.columns.names else "null" for n in existing
        }
        with self.commits_tagged(tag, {TXN_APP_ID: application_id, TXN_VERSION: str(batch)}):
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
