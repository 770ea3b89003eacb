"""A key whose state cannot be written is in no store: changelog, lake, staging and checks agree on that."""

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.lake.tables import table_path
from include.quality import verified_stores
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.read_models.balance.events import FundsAdded
from include.rebuild.request import RebuildRequest
from include.settings import Settings
from spark_jobs.build_staging import build_staging
from spark_jobs.compaction import compact
from spark_jobs.lake.live_lake import promote
from spark_jobs.quality_check import check
from tests.support.lake.folded_log import fold_log, make_first_version
from tests.support.lake.registered_version import registered_version
from tests.support.stream_process import EventSource

NAME = "pockets"
MODULE = """
from include.declarations.read_model import ReadModel, StateField, decimal_type

def customer():
    from pyspark.sql.functions import col
    return col("customerId")

def total():
    from pyspark.sql import functions as F
    return {"total": F.sum("amount")}

def merged():
    from pyspark.sql import functions as F
    return {"total": F.sum("total")}

DECLARATIONS = [ReadModel(
    name="pockets", source_topic="pockets", event_types=("FundsAdded",), key=customer,
    state=(StateField("total", decimal_type(3, 1), "At most 99.9."),), folds={1: total}, merges={1: merged},
)]
"""


class Pockets:
    """A read model with three digits, its events, and the stores that its fold fills."""

    def __init__(self, settings: Settings, spark: SparkSession) -> None:
        folder = settings.home / NAME
        folder.mkdir()
        (folder / "pockets.py").write_text(MODULE)
        self.settings = settings.changed(read_models_dir=folder, quality_wait_s=1.0)
        self.spark = spark
        self.model: ReadModel = read_model(NAME, (folder,))
        make_first_version(self.settings, NAME)
        self.source = EventSource(self.settings, NAME)
        self.batches = self.checks = 0

    def add(self, **amounts: str) -> None:
        """Append an event for each customer, and write the state of each key to the changelog."""
        self.source.append(
            FundsAdded(customerId=customer, amount=Decimal(amount)) for customer, amount in amounts.items()
        )
        self.source.flush()
        fold_log(self.spark, self.settings, self.model, self.batches)
        self.batches += 1

    def check(self, *stores: StoreName, mode: Mode, version: int | None = None) -> CheckResult:
        """Check these stores; every record must be right."""
        self.checks += 1
        result = check(
            self.spark, self.settings, CheckRequest(NAME, stores, mode, f"check-{self.checks}", version)
        )
        assert result.passed, (result.verdict, result.failing_keys)
        return result

    def in_lake(self) -> dict[str, Decimal]:
        """Return the total of each key in the lake."""
        rows = self.spark.read.format("delta").load(table_path(self.settings.lake_root, NAME)).collect()
        return {row["key"]: row["total"] for row in rows}


@pytest.fixture(scope="module")
def pockets(settings: Settings, lake_spark: SparkSession) -> Pockets:
    """A log in which the total of the key `full` has three digits before the point: one too many."""
    pockets = Pockets(settings, lake_spark)
    pockets.add(full="60", other="1")
    pockets.add(full="60", other="1")
    assert promote(lake_spark, pockets.settings, pockets.model) is not None
    return pockets


@pytest.fixture(scope="module")
def written(pockets: Pockets) -> Pockets:
    """The same after an event with which the state of `full` can be written, in the lake too."""
    pockets.add(full="-30", other="1")
    assert compact(pockets.spark, pockets.settings, pockets.model) is not None
    return pockets


def test_no_store_has_a_key_whose_state_cannot_be_written(pockets: Pockets) -> None:
    assert pockets.in_lake() == {"other": Decimal("2.0")}
    result = pockets.check(StoreName.LAKE, StoreName.CHANGELOG, mode=Mode.FULL)
    assert (
        "1 key without a record, because the state cannot be written: full (field total: " in result.verdict
    )
    assert verified_stores.read(pockets.settings.home, NAME) is None, "nothing to go on from"


def test_a_key_whose_state_can_be_written_again_is_in_the_lake(written: Pockets) -> None:
    assert written.in_lake() == {"full": Decimal("90.0"), "other": Decimal("3.0")}


@pytest.mark.endurance
def test_checks_of_every_kind_agree(written: Pockets) -> None:
    spark = written.spark
    assert written.check(StoreName.LAKE, mode=Mode.FULL).unwritten_total == 0

    written.add(full="10")
    result = written.check(StoreName.LAKE, StoreName.CHANGELOG, mode=Mode.FULL)
    assert (result.records, result.unwritten_total) == (3, 1), "the lake still has a record of the key"
    sampled = written.check(StoreName.LAKE, StoreName.CHANGELOG, mode=Mode.SAMPLE)
    assert "1 key without a record" in sampled.verdict
    assert compact(spark, written.settings, written.model) is not None
    assert written.in_lake() == {"other": Decimal("3.0")}
    result = written.check(StoreName.LAKE, mode=Mode.INCREMENTAL)
    assert "keys have states that cannot be written (1)" in result.full_check_reason

    request = RebuildRequest({NAME: 1}, "test", approve=True, grace_h=1.0)
    number = registered_version(written.settings, written.model, request, "rebuild")
    build_staging(spark, written.settings, written.model, number)
    assert written.check(StoreName.STAGING, mode=Mode.FULL, version=number).records == 1
