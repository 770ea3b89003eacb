"""The rule of an expectation marks the same failing keys that Great Expectations counts."""

from pyspark.sql import SparkSession

from include.quality.check import StoreName
from include.replay.key_expectations import key_expectations
from include.replay.validation import validate
from spark_jobs.quality.evaluation import quoted, with_failures
from tests.support.lake.comparison_rows import FIELDS, ROWS, comparison_rows

RECORD = f"struct<{', '.join(f'{quoted(field)}: string' for field in FIELDS)}>"
COLUMNS = (
    f"place string, key string, stored {RECORD}, replayed {RECORD}, stored_offset long, required_offset long, copy int, \
stored_has_ended boolean"
)


def test_both_forms_of_a_rule_agree(lake_spark: SparkSession) -> None:
    expectations = key_expectations(FIELDS, quoted)
    comparison = with_failures(lake_spark.createDataFrame(comparison_rows(), COLUMNS), expectations).persist()

    marked = {row.key: set(row.failed) for row in comparison.collect()}
    results = validate(StoreName.LAKE, comparison, expectations, ("place", "key"))
    comparison.unpersist()

    assert marked == {key: failed for key, (_, failed) in ROWS.items()}
    counted = {result.expectation: {row["key"] for row in result.sample} for result in results}
    assert counted == {
        one.name: {key for key, (_, failed) in ROWS.items() if one.name in failed} for one in expectations
    }
