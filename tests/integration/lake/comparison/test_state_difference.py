"""Two sets of states are compared key by key: what counts as a change, exact totals, and the bins of the changes."""

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from include.rebuild.comparison.comparison import Bin, FieldChange
from spark_jobs.comparison.state_difference import compare_states
from tests.support.lake.compared_by_both import compared_by_both, compared_by_duckdb

COLUMNS = "key string, amount string, points long, note string, event_count long"
FIELDS = ("amount", "points", "note")
Row = tuple[str, str | None, int | None, str | None, int]
BEFORE: list[Row] = [
    ("same", "5.00", 1, "x", 2),
    ("same but longer", "7.00", 1, None, 2),
    ("up", "100.00", 1, "x", 3),
    ("down", "10.00", 1, "x", 3),
    ("text only", "1.00", 1, "x", 1),
    ("gone", "3.00", 1, "x", 1),
]
AFTER: list[Row] = [
    ("same", "5.00", 1, "x", 2),
    ("same but longer", "7.00", 1, None, 9),
    ("up", "101.00", 1, "x", 3),
    ("down", "-20.00", 1, "x", 3),
    ("text only", "1.00", 1, None, 1),
    ("new", "0.05", 2, "x", 1),
]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    # Python's decimals reach Spark with 34 digits.
    return spark.createDataFrame(rows, COLUMNS).withColumn("amount", col("amount").cast("decimal(38,2)"))


def test_changed_new_and_gone_keys_are_counted_and_totals_are_exact(lake_spark: SparkSession) -> None:
    found = compared_by_both(frame(lake_spark, BEFORE), frame(lake_spark, AFTER), FIELDS, FIELDS)

    # A state with more events and the same fields has not changed.
    assert (found.changed, found.added, found.gone) == (3, 1, 1)
    assert found.keys == (6, 6)
    assert found.events == (12, 19)
    amount = found.fields["amount"]
    assert (amount.before, amount.after, amount.moved) == ("126.00", "94.05", "34.05")
    assert amount.below_zero == (0, 1)
    assert set(found.fields) == {"amount", "points"}
    assert found.fields["points"].moved == "3"
    filled = [one for one in amount.bins if one.keys]
    assert filled == [
        Bin("-50", "-20", 1),
        Bin("-5", "-2", 1),
        Bin("0.05", "0.1", 1),
        Bin("1", "2", 1),
    ]
    assert (amount.bins[0], amount.bins[-1]) == (filled[0], filled[-1])


def test_the_largest_changes_come_first_and_there_are_samples_of_each_kind(lake_spark: SparkSession) -> None:
    found = compared_by_both(frame(lake_spark, BEFORE), frame(lake_spark, AFTER), FIELDS, FIELDS)

    assert found.measure == "amount"
    assert [change.key for change in found.largest] == ["down", "gone", "up", "new", "text only"]
    assert found.largest[0].fields["amount"] == FieldChange("10.00", "-20.00")
    assert found.largest[1].fields == {
        "amount": FieldChange("3.00", None),
        "points": FieldChange("1", None),
        "note": FieldChange("x", None),
    }
    assert found.largest[-1].fields["note"] == FieldChange("x", "null")
    kinds = {change.kind: change.key for change in found.samples}
    assert kinds["added"] == "new"
    assert kinds["gone"] == "gone"


def test_a_field_that_only_one_version_has_changes_no_key(lake_spark: SparkSession) -> None:
    before, after = frame(lake_spark, BEFORE[:2]), frame(lake_spark, BEFORE[:2])

    found = compared_by_both(before, after, ("amount", "note"), ("amount", "points"))

    assert (found.changed, found.added, found.gone) == (0, 0, 0)
    assert found.largest == found.samples == ()
    points = found.fields["points"]
    assert (points.before, points.after, points.moved, points.bins) == (None, "2", "0", ())


def test_the_measure_is_the_first_number_that_changes(lake_spark: SparkSession) -> None:
    before: list[Row] = [("a", "1.00", 5, "x", 1), ("b", "1.00", 5, "x", 1)]
    after: list[Row] = [("a", "1.00", 6, "x", 1), ("b", "1.00", 15, "x", 1)]

    found = compared_by_both(frame(lake_spark, before), frame(lake_spark, after), FIELDS, FIELDS)

    assert found.measure == "points"
    assert [change.key for change in found.largest] == ["b", "a"]


def test_states_without_numbers_are_compared(lake_spark: SparkSession) -> None:
    found = compared_by_both(frame(lake_spark, BEFORE), frame(lake_spark, AFTER), ("note",), ("note",))

    assert (found.changed, found.added, found.gone) == (1, 1, 1)
    assert (found.fields, found.measure) == ({}, "event_count")
    assert {change.key for change in found.largest} == {"text only", "new", "gone"}


def test_states_that_have_no_field_in_common_are_compared(lake_spark: SparkSession) -> None:
    found = compared_by_both(frame(lake_spark, BEFORE), frame(lake_spark, AFTER), ("amount",), ("points",))

    assert (found.changed, found.added, found.gone) == (0, 1, 1)


def test_versions_without_states_are_compared(lake_spark: SparkSession) -> None:
    found = compared_by_both(frame(lake_spark, []), frame(lake_spark, []), FIELDS, FIELDS)

    assert (found.changed, found.added, found.gone, found.keys, found.events) == (0, 0, 0, (0, 0), (0, 0))
    assert (found.fields["amount"].before, found.fields["amount"].after) == ("0", "0")


def test_sums_beyond_a_long_and_beyond_38_digits_do_not_fail(lake_spark: SparkSession) -> None:
    keys, most, huge = 20_000, 2**63 - 1, "9" * 32 + ".99"
    before = lake_spark.range(keys).selectExpr(
        "cast(id as string) as key",
        f"cast('{huge}' as decimal(38,2)) as amount",
        f"{most}L as points",
        "'x' as note",
        "1L as event_count",
    )

    found = compare_states(before, frame(lake_spark, []), FIELDS, FIELDS)

    with pytest.raises(duckdb.OutOfRangeException):
        compared_by_duckdb(before, frame(lake_spark, []), FIELDS, FIELDS)
    assert found.gone == keys
    assert found.fields["points"].before == str(keys * most)
    assert (found.fields["amount"].before, found.fields["amount"].moved) == ("NaN", "NaN")
    assert sum(one.keys for one in found.fields["amount"].bins) == keys
