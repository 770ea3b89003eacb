"""The columns of a read model's key are found, and a key without its events' entity is refused before it is folded."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import coalesce, col, concat, date_format, lit

from include.declarations.load import load_catalog, read_model
from include.errors import ReadModelError
from spark_jobs.folding.fold_fingerprint import incompatibility
from spark_jobs.folding.key_columns import key_columns, require_entity_key

READ_MODELS = Path(__file__).parents[2] / "support" / "read_models"


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        (lambda: col("customerId"), ["customerId"]),
        (lambda: concat("customerId", date_format("occurredOn", "yyyy")), ["customerId", "occurredOn"]),
        (
            lambda: coalesce("FundsAdded.customerId", col("FundsWithdrawn")["customerId"]),
            ["event:FundsAdded.customerId", "event:FundsWithdrawn.customerId"],
        ),
        (lambda: concat(col("id"), F.transform(F.array("customerId"), lambda x: x)[0]), ["customerId", "id"]),
        (lambda: col("key").cast("string"), ["record:key"]),
    ],
    ids=["field", "two", "of each event type", "in a function", "record key"],
)
def test_a_keys_columns_are_found(
    lake_spark: SparkSession, key: Callable[[], Column], columns: list[str]
) -> None:
    model = replace(read_model("balance"), key=key)

    assert key_columns(lake_spark, model) == columns
    require_entity_key(lake_spark, model)


@pytest.mark.parametrize(
    "key",
    [
        lambda: date_format("occurredOn", "yyyy"),
        lambda: lit("customerId"),
        lambda: col("FundsAdded.customerId"),
    ],
    ids=["day", "literal", "of one event type"],
)
def test_a_key_without_the_entity_is_not_folded(
    lake_spark: SparkSession, tmp_path: Path, key: Callable[[], Column]
) -> None:
    model = replace(read_model("balance"), key=key)

    with pytest.raises(ReadModelError, match="lacks customerId, by which Funds"):
        require_entity_key(lake_spark, model)
    assert "lacks customerId" in (incompatibility(lake_spark, str(tmp_path), model, 1) or "")


def test_a_key_of_unknown_columns_is_not_folded(lake_spark: SparkSession, tmp_path: Path) -> None:
    model = replace(read_model("balance"), key=lambda: col("custmerId"))

    reason = incompatibility(lake_spark, str(tmp_path), model, 1)

    assert reason is not None
    assert "cannot be built" in reason
    assert "custmerId" in reason


def test_declared_read_models_have_their_entity_in_the_key(lake_spark: SparkSession, tmp_path: Path) -> None:
    models = load_catalog((READ_MODELS,)).models.values()

    assert {model.name for model in models} >= {"balance", "deposits-per-day"}
    for model in models:
        assert incompatibility(lake_spark, str(tmp_path), model, model.newest_fold_revision) is None
