"""The points of the system `pos` at two rates: another rate is one line, and leaves the revision before as it is."""

import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr

from demo.pos.dataset import SYSTEM
from demo.systems.pos.loyalty import earned_points
from include.declarations.catalog import Catalog
from include.declarations.load import load_catalog
from spark_jobs.folding.expressions.columns import field_columns
from spark_jobs.folding.fold_fingerprint import fingerprint

RATES = 'RATES = {1: "0.02"}'
# 0.25 at 2 % is 0.005, half of the last digit.
AMOUNTS = ("0.25", "-0.25", "12.34", "0.24", "0.00")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """The declarations of a copy of the system in which three per cent is revision 2."""
    copy = shutil.copytree(SYSTEM, tmp_path / "pos", ignore=shutil.ignore_patterns("__pycache__"))
    model = copy / "loyalty.py"
    text = model.read_text(encoding="utf-8")
    assert text.count(RATES) == 1
    model.write_text(text.replace(RATES, f'{RATES[:-1]}, 2: "0.03"}}'), encoding="utf-8")
    return load_catalog((copy,))


@pytest.fixture(scope="module")
def events(lake_spark: SparkSession) -> DataFrame:
    """Invoices of one card."""
    rows = [("PURCHASE" if Decimal(amount) >= 0 else "CANCELLATION", Decimal(amount)) for amount in AMOUNTS]
    return lake_spark.createDataFrame(rows, "kind string, amount decimal(18, 2)")


def folded(catalog: Catalog, events: DataFrame, revision: int) -> dict[str, object]:
    fold = catalog.models["loyalty"].folds[revision]
    (row,) = events.agg(*(column.alias(name) for name, column in field_columns(fold).items())).collect()
    found: dict[str, object] = row.asDict()
    return found


def test_each_invoice_is_rounded_half_away_from_zero(events: DataFrame) -> None:
    earned = [row.earned for row in events.select(expr(earned_points(1)).alias("earned")).collect()]

    assert earned == [Decimal(text) for text in ("0.01", "-0.01", "0.25", "0.00", "0.00")]


def test_another_rate_is_a_revision_beside_the_first(catalog: Catalog, events: DataFrame) -> None:
    shared = {"spent": Decimal("12.58"), "invoices": 4, "cancellations": 1}

    assert folded(catalog, events, 1) == {"points": Decimal("0.25"), **shared}
    # 0.01 and -0.01, 0.37, 0.01, and 0.00.
    assert folded(catalog, events, 2) == {"points": Decimal("0.38"), **shared}
    assert catalog.models["loyalty"].newest_fold_revision == 2


def test_the_first_revision_is_the_same_with_and_without_the_second(
    catalog: Catalog, events: DataFrame
) -> None:
    copied = fingerprint(catalog.models["loyalty"], 1)

    assert copied == fingerprint(load_catalog((SYSTEM,)).models["loyalty"], 1)
    assert copied != fingerprint(catalog.models["loyalty"], 2)
    assert events.count() == len(AMOUNTS)


def test_the_parts_of_a_card_merge_to_the_whole(catalog: Catalog, events: DataFrame) -> None:
    model = catalog.models["loyalty"]
    parts = [
        part.agg(*(column.alias(name) for name, column in field_columns(model.folds[2]).items()))
        for part in (events.where(col("amount") > 1), events.where(col("amount") <= 1))
    ]
    merge = model.merge(2)
    assert merge is not None
    (row,) = parts[0].union(parts[1]).agg(*(c.alias(n) for n, c in field_columns(merge).items())).collect()

    assert row.asDict() == folded(catalog, events, 2)
