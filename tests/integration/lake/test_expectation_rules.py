"""Spark marks the same failing keys as DuckDB, whatever the names of the fields: the SQL of the rules is translated."""

from pyspark.sql import SparkSession

from include.read_models.balance.model import READ_MODEL as BALANCE
from include.replay.key_expectations import key_expectations
from include.replay.rules import quoted
from include.settings import Settings
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import SourceLog
from spark_jobs.quality.tables import SparkTables
from tests.support.lake.comparison_rows import FIELDS, ROWS, TYPES, comparison_rows

NAMES = ("`" + field.replace("`", "``") + "`" for field in FIELDS)
RECORD = f"struct<{', '.join(f'{name}: string' for name in NAMES)}>"
COLUMNS = (
    f"place string, key string, stored {RECORD}, replayed {RECORD}, stored_offset long, required_offset long, copy int, \
stored_has_ended boolean"
)


def test_spark_marks_the_keys_that_break_a_rule(lake_spark: SparkSession) -> None:
    settings = Settings()
    session = CheckSession(lake_spark, settings, SourceLog(lake_spark, settings, BALANCE, 1), "a test")
    tables, other = SparkTables(session), SparkTables(session)
    tables["comparison"] = lake_spark.createDataFrame(comparison_rows(), COLUMNS)
    # Another check in the same session.
    other.create("comparison", "SELECT 1 AS key")
    expectations = key_expectations(TYPES, tables.comparable)
    columns = {name: sql for one in expectations for name, sql in one.columns.items()}
    added = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())

    marked = {}
    for one in expectations:
        query = f"SELECT key FROM (SELECT *, {added} FROM comparison) AS compared WHERE {one.rule.fails}"  # noqa: S608 - rules of the product
        marked[one.name] = {key for (key,) in tables.rows(query)}
    other.close()
    tables.close()
    session.release()

    assert marked == {
        one.name: {key for key, (_, failed) in ROWS.items() if one.name in failed} for one in expectations
    }
    assert not lake_spark.catalog.listTables(pattern="check_*")
