"""The tables of a check with Spark: frames, and the temporary views under which its queries find them."""

import uuid
from typing import Any

import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from sqlglot import exp

from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.quality.session import CheckSession


class SparkTables:
    """Tables of Spark; see CheckTables. Checks in one Spark session have views with different names."""

    def __init__(self, session: CheckSession) -> None:
        self._session = session
        self._prefix = f"check_{uuid.uuid4().hex}_"
        self._frames: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        """Return a table."""
        return self._frames[name]

    def __setitem__(self, name: str, frame: DataFrame) -> None:
        """Create or replace a table, which is computed wherever it is used."""
        self._frames[name] = frame
        frame.createOrReplaceTempView(self._prefix + name)

    def create(self, name: str, query: str, key_partitions: int = 0) -> None:
        """See CheckTables."""
        found = self.query(query)
        if key_partitions:
            partition = partition_of_key(col("key").cast("binary"), key_partitions)
            found = found.withColumn("key_partition", partition)
        self[name] = self._session.keep(found)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """See CheckTables."""
        with self._session.computing("comparing"):
            return [tuple(row) for row in self.query(query).collect()]

    def arrow(self, query: str) -> pa.Table:
        """See CheckTables."""
        with self._session.computing("comparing"):
            return self.query(query).toArrow()

    def comparable(self, value: str, kind: str) -> str:
        """See CheckTables: Spark compares maps only as texts."""
        return f"CAST({value} AS VARCHAR)" if "MAP(" in kind else value

    def query(self, query: str) -> DataFrame:
        """Return the rows of a query."""
        tree = sqlglot.parse_one(query, read="duckdb")
        for table in list(tree.find_all(exp.Table)):
            name = table.name
            if name in self._frames:
                alias = table.alias_or_name
                table.set("this", exp.to_identifier(self._prefix + name))
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return self._session.spark.sql(tree.sql(dialect="spark"))

    def close(self) -> None:
        """Remove the views."""
        for name in self._frames:
            self._session.spark.catalog.dropTempView(self._prefix + name)
