"""A Delta table as Spark reads and writes it: its commits with their tags, and its definition."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Any, Generic

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from include.lake.tagged_table import NewestTag, TableCommit, newest_tag
from include.lake.tags import LakeTagT, TagReader, TagT
from spark_jobs.lake.table_definition import TableDefinition, ensure_table
from spark_jobs.runtime.session import session_settings

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def table_history(
    spark: SparkSession, path: str, read_tag: TagReader[TagT], limit: int | None = None
) -> tuple[TableCommit[TagT], ...]:
    """Return the commits of a table, newest first; none if it does not exist."""
    if not DeltaTable.isDeltaTable(spark, path):
        return ()
    history = DeltaTable.forPath(spark, path).history(limit)
    rows = history.select("version", "timestamp", "operation", "userMetadata").collect()
    return tuple(
        TableCommit(row.version, row.timestamp.astimezone(UTC), row.operation, read_tag(row.userMetadata))
        for row in sorted(rows, key=lambda row: -row.version)
    )


def newest_tag_of(spark: SparkSession, path: str, read_tag: TagReader[TagT]) -> NewestTag[TagT] | None:
    """Return the newest tag of a table; None if there is none, or no table."""
    return newest_tag(partial(table_history, spark, path, read_tag))


def delta_log(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the Delta log of a table and its newest snapshot, as Java objects."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no other way to Delta's log
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)  # noqa: SLF001
    none = jvm.scala.Option.empty()
    return log, log.update(False, none, none)  # noqa: FBT003 - a Java method


@dataclass(frozen=True)
class SparkTable(ABC, Generic[LakeTagT]):
    """A table of the lake that belongs to a declaration.

    spark: the session that reads and writes it; each micro-batch has its own.
    retention_h: how long replaced files and the history are retained.
    """

    spark: SparkSession
    path: str
    retention_h: float

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the read model or event table."""

    @property
    @abstractmethod
    def definition(self) -> TableDefinition:
        """The declared columns, comments, properties and layout."""

    @abstractmethod
    def read_tag(self, text: str | None) -> LakeTagT | None:
        """Read a commit's `userMetadata`; None when it is not a tag of such a table."""

    def ensure(self) -> None:
        """Create the table, or update its columns, comments and properties to match the declaration and the settings.

        Raises LakeTableError when the type of a column differs from the declared one.
        """
        ensure_table(self.spark, self.path, self.definition)

    def history(self, limit: int | None = None) -> tuple[TableCommit[LakeTagT], ...]:
        """Return the commits, newest first; none if the table does not exist."""
        return table_history(self.spark, self.path, self.read_tag, limit)

    def newest_tag(self) -> NewestTag[LakeTagT] | None:
        """Return the newest tag, or None if there is none."""
        return newest_tag(self.history)

    def commits_tagged(
        self, tag: LakeTagT, settings: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """Tag the commits of a block of code that has no option for it; settings: others of the session meanwhile."""
        return session_settings(self.spark, {USER_METADATA: tag.to_json(), **(settings or {})})
