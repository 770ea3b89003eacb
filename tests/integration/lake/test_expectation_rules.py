"""The rule of an expectation marks the same failing keys that Great Expectations counts."""

from pyspark.sql import SparkSession

from include.quality.check import StoreName
from spark_jobs.quality.evaluation import with_failures
from spark_jobs.quality.expectations import (
    COMPLETE,
    NO_ENDED_KEY,
    NO_EXTRA_KEY,
    NO_MISSING_KEY,
    ONCE,
    folds_to,
    key_expectations,
)
from spark_jobs.quality.validation import validate

FIELDS = ("amount", "event_count")
RECORD = "struct<amount:string, event_count:string>"
COLUMNS = (
    f"place string, key string, stored {RECORD}, replayed {RECORD}, stored_offset long, required_offset long, copy int, \
stored_has_ended boolean"
)
ONE = ("1.00", "1")
# key -> the rest of its row, and the expectations that it fails.
ROWS = {
    "right": ((ONE, ONE, 5, 5, 1, False), set()),
    "beyond the cut": ((ONE, ONE, 5, None, 1, False), set()),
    "amount off": ((("2.00", "1"), ONE, 5, 5, 1, False), {folds_to("amount")}),
    "folded twice": ((("2.00", "2"), ONE, 5, 5, 1, False), {folds_to("amount"), folds_to("event_count")}),
    "behind": ((ONE, ONE, 4, 5, 1, False), {COMPLETE}),
    "missing": ((None, ONE, None, 5, 1, False), {NO_MISSING_KEY}),
    "extra": ((ONE, None, 5, None, 1, False), {NO_EXTRA_KEY}),
    "second": ((ONE, ONE, 5, 5, 2, False), {ONCE}),
    "ended": ((ONE, ONE, 5, 5, 1, True), {NO_ENDED_KEY}),
}


def test_both_forms_of_a_rule_agree(lake_spark: SparkSession) -> None:
    rows = [("lake", key, *row) for key, (row, _) in ROWS.items()]
    expectations = key_expectations(FIELDS)
    comparison = with_failures(lake_spark.createDataFrame(rows, COLUMNS), expectations).persist()

    marked = {row.key: set(row.failed) for row in comparison.collect()}
    results = validate(StoreName.LAKE, comparison, expectations, ("place", "key"))
    comparison.unpersist()

    assert marked == {key: failed for key, (_, failed) in ROWS.items()}
    counted = {result.expectation: {row["key"] for row in result.sample} for result in results}
    assert counted == {
        one.name: {key for key, (_, failed) in ROWS.items() if one.name in failed} for one in expectations
    }
