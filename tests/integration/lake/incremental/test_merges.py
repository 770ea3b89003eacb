"""A merge of two parts of the events is the fold of all of them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError
from spark_jobs.folding.fold_query import fold, merge_columns

EVENTS = "customerId string, event_type string, amount decimal(18,2), partition int, offset long, occurredOn timestamp"
BALANCE = read_model("balance")


def random_events(number: int) -> Iterator[tuple[object, ...]]:
    """Yield events of ten customers in two partitions."""
    chosen = random.Random(1)
    for offset in range(number):
        customer = chosen.randrange(10)
        kind = chosen.choice(("FundsAdded", "FundsWithdrawn"))
        amount = Decimal(chosen.randrange(1, 10_000)) / 100
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chosen.randrange(1_000))
        yield str(customer), kind, amount, customer % 2, offset, time


def merged(model: ReadModel, parts: DataFrame) -> DataFrame:
    return parts.groupBy(col("key").alias("key")).agg(*merge_columns(model, 1))


@pytest.mark.parametrize("first", [0, 5, 100, 200])
def test_a_merge_of_two_parts_is_the_fold_of_all(lake_spark: SparkSession, first: int) -> None:
    events = lake_spark.createDataFrame(list(random_events(200)), EVENTS)
    before, after = events.where(col("offset") < first), events.where(col("offset") >= first)

    parts = fold(BALANCE, 1, before).unionByName(fold(BALANCE, 1, after))

    assert sorted(merged(BALANCE, parts).collect()) == sorted(fold(BALANCE, 1, events).collect())


def test_a_merge_of_other_fields_is_refused(lake_spark: SparkSession) -> None:
    model = replace(BALANCE, merges={1: lambda: {"total": F.sum("amount")}})

    with pytest.raises(
        ReadModelError, match=r"Merge 1 of balance returns \['total'\], but the state declares \['amount'\]"
    ):
        merged(model, lake_spark.range(0).withColumn("key", col("id")))
