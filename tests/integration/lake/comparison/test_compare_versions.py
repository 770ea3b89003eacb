"""A rebuild with a wrong fold passes its check, and its comparison with the live version shows what it does to the balances."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.quality.check import CheckRequest, Mode, StoreName
from include.read_models.balance.events import FundsAdded, FundsWithdrawn
from include.rebuild.comparison import report
from include.rebuild.comparison.compared_versions import NoStagingError
from include.rebuild.comparison.comparison import Comparison, FieldChange
from include.rebuild.comparison.thresholds import Thresholds, exceeded
from include.rebuild.request import RebuildRequest
from include.rebuild.retirement import abandon_version
from include.rebuild.stage import report_id
from include.replay.check import version_comparison
from include.replay.check.run import run_check
from include.replay.check.target import OtherEngineError
from include.replay.check.version_comparison import compare_unless_written, comparison_after
from include.settings import Settings
from spark_jobs.build_staging import build_staging
from spark_jobs.compare_versions import compare_versions
from spark_jobs.quality_check import check
from tests.support.lake.checked_ledger import CheckedLedger, Record, TableLedger
from tests.support.lake.registered_version import registered_version

NAME = "compared-balances"
# Revision 2 adds a bonus to withdrawals as well, which is the mistake. Revision 3 is what was meant, counts the deposits, and is a function.
MODULE = """
from dataclasses import replace
from decimal import Decimal

from include.declarations.read_model import StateField
from include.read_models.balance import model
from pyspark.sql import functions as F


def signed():
    return F.when(F.col("event_type") == "FundsWithdrawn", -F.col("amount")).otherwise(F.col("amount"))


def bonus():
    return (F.col("amount") * F.lit(Decimal("0.10"))).cast("decimal(20,2)")


FUNDS_WITH_BONUS = {{
    "amount": "sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount ELSE amount END + round(amount * 0.10, 2))"
}}


def funds_with_bonus_on_deposits():
    is_deposit = F.col("event_type") == "FundsAdded"
    return {{
        "amount": F.sum(signed() + F.when(is_deposit, bonus()).otherwise(0)),
        "deposits": F.count_if(is_deposit),
    }}


DECLARATIONS = [replace(
    model.READ_MODEL,
    name={name!r},
    source_topic={name!r},
    state=(*model.READ_MODEL.state, StateField("deposits", "long", "Number of deposits.", since=3)),
    folds={{1: model.READ_MODEL.folds[1], 2: FUNDS_WITH_BONUS, 3: funds_with_bonus_on_deposits}},
)]
"""
CUSTOMERS = 30


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> TableLedger:
    """Deposits of 100.00 by every customer, and withdrawals of 50.00 by the first ten."""
    ledger = TableLedger(settings, NAME)
    module = ledger.settings.home / f"models-of-{NAME}" / "compared_balances.py"
    module.write_text(MODULE.format(name=NAME))
    ledger.model = read_model(NAME, (module.parent,), reload=True)
    customers = [f"customer-{number}" for number in range(CUSTOMERS)]
    ledger.source.append(FundsAdded(customerId=key, amount=Decimal("100.00")) for key in customers)
    ledger.source.append(FundsWithdrawn(customerId=key, amount=Decimal("50.00")) for key in customers[:10])
    return ledger


def built(spark: SparkSession, ledger: CheckedLedger, revision: int, run_id: str) -> int:
    """Register a version and build its staging table; return its number."""
    request = RebuildRequest({NAME: revision}, "10 % bonus", approve=True, grace_h=1.0)
    number = registered_version(ledger.settings, ledger.model, request, run_id)
    build_staging(spark, ledger.settings, ledger.model, number)
    return number


def abandoned(ledger: CheckedLedger, number: int) -> None:
    abandon_version(ledger.settings, NAME, number)


def compared(
    spark: SparkSession, ledger: CheckedLedger, number: int, model: ReadModel | None = None
) -> Comparison:
    run_id = f"compared-v{number}"
    compare_versions(spark, ledger.settings, model or ledger.model, number, run_id)
    found = report.read(ledger.settings.home, run_id)
    assert found is not None
    assert found.engine == "spark"
    return found


def assert_same(other: Comparison, found: Comparison) -> None:
    assert replace(other, run_id=found.run_id, compared_at=found.compared_at) == found


def compared_by_both(spark: SparkSession, ledger: CheckedLedger, number: int) -> Comparison:
    found = compared(spark, ledger, number)
    compare_unless_written(ledger.settings, NAME, number, "with-duckdb")
    other = report.read(ledger.settings.home, "with-duckdb")
    assert other is not None
    assert other.engine == "duckdb"
    assert_same(other, found)
    return found


def test_a_wrong_fold_is_proved_green_and_its_comparison_shows_what_it_does(
    settings: Settings, lake_spark: SparkSession, ledger: CheckedLedger
) -> None:
    number = built(lake_spark, ledger, 2, "wrong")
    request = CheckRequest(NAME, (StoreName.STAGING,), Mode.FULL, "wrong", number)
    assert check(lake_spark, ledger.settings, request).passed, "v2 is what its own fold makes of the events"
    # Later events are on the log of both versions, but not in staging, and change nothing.
    ledger.source.append([FundsAdded(customerId="customer-0", amount=Decimal("1000.00"))])

    found = compared_by_both(lake_spark, ledger, number)

    assert (found.changed, found.added, found.gone, found.all_keys) == (CUSTOMERS, 0, 0, CUSTOMERS)
    amount = found.fields["amount"]
    # 30 deposits with 10.00, and 10 withdrawals with 5.00, which no customer should get.
    assert (amount.before, amount.after, amount.moved) == ("2500.00", "2850.00", "350.00")
    assert [(one.low, one.high, one.keys) for one in amount.bins] == [("10", "20", CUSTOMERS)]
    largest = found.largest[0]
    assert (largest.key, largest.fields["amount"]) == ("customer-0", FieldChange("50.00", "65.00"))
    assert found.notes == ()
    assert "amount * 0.10" in found.folds[1].code
    assert "sum(" in found.folds[1].columns[0]
    (too_many,) = exceeded(Thresholds(max_changed_percent=99.0, max_total_change=350.0), found)
    assert "30 of 30 keys differ (100 %)" in too_many
    page = report.comparison_path(settings.home, found.run_id).with_suffix(".html").read_text()
    assert '<span class="added">+amount = sum(' in page
    abandoned(ledger, number)


def test_a_check_of_a_rebuild_compares_with_the_events_that_it_has_read(
    lake_spark: SparkSession, ledger: CheckedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = built(lake_spark, ledger, 2, "shared")
    found = compared(lake_spark, ledger, number)
    run_id = report_id(NAME, number)
    request = CheckRequest(NAME, (StoreName.STAGING,), Mode.FULL, run_id, number)
    further = comparison_after(ledger.settings, request)

    assert run_check(ledger.settings, request, further).passed

    shared = report.read(ledger.settings.home, run_id)
    assert shared is not None
    assert_same(shared, found)
    with monkeypatch.context() as no_events:
        no_events.setattr(version_comparison, "EventSource", None)
        compare_unless_written(ledger.settings, NAME, number, run_id)
        build_staging(lake_spark, ledger.settings, ledger.model, number)
        with pytest.raises(TypeError):
            compare_unless_written(ledger.settings, NAME, number, run_id)
    assert comparison_after(ledger.settings, replace(request, run_id="by hand")) is None
    abandoned(ledger, number)


@pytest.mark.endurance  # test_state_difference.py compares versions with different fields
def test_a_field_that_is_new_is_named_and_is_no_change(
    lake_spark: SparkSession, ledger: CheckedLedger
) -> None:
    number = built(lake_spark, ledger, 3, "right")

    found = compared(lake_spark, ledger, number)
    with pytest.raises(OtherEngineError, match="a fold is a function"):
        compare_unless_written(ledger.settings, NAME, number, "with-duckdb")

    assert found.new_fields == ("deposits",)
    assert found.fields["deposits"].before is None
    assert found.fields["deposits"].after == str(CUSTOMERS + 1)
    amount = found.fields["amount"]
    assert (amount.before, amount.after) == ("3500.00", "3900.00")
    abandoned(ledger, number)


@pytest.mark.endurance
def test_a_live_version_whose_fold_is_gone_is_compared_as_it_is_in_the_lake(
    lake_spark: SparkSession, ledger: CheckedLedger
) -> None:
    stored = [Record(f"customer-{n}", Decimal("7.00"), 1, 0, n) for n in range(5)]
    number = built(lake_spark, ledger, 2, "without revision 1")
    folds = {revision: fold for revision, fold in ledger.model.folds.items() if revision != 1}
    edited = replace(ledger.model, folds=folds, merges={})

    nothing = compared(lake_spark, ledger, number, edited)
    ledger.write_lake(lake_spark, stored)
    found = compared(lake_spark, ledger, number, edited)

    assert (nothing.added, nothing.changed) == (CUSTOMERS, 0)
    assert "does not contain it" in nothing.notes[0]
    assert (found.changed, found.added, found.gone) == (5, CUSTOMERS - 5, 0)
    assert found.fields["amount"].before == "35.00"
    assert "cannot be folded again, because the module has no fold revision 1 any more" in found.notes[0]
    assert "lake/compared-balances" in found.notes[0]
    abandoned(ledger, number)


def test_a_version_without_staging_is_refused(lake_spark: SparkSession, ledger: CheckedLedger) -> None:
    request = RebuildRequest({NAME: 2}, "nothing built", approve=True, grace_h=1.0)
    number = registered_version(ledger.settings, ledger.model, request, "unbuilt")

    with pytest.raises(NoStagingError, match=f"v{number} of {NAME} has no staging table"):
        compare_versions(lake_spark, ledger.settings, ledger.model, number, "unbuilt")
    with pytest.raises(NoStagingError, match=f"v{number} of {NAME} has no staging table"):
        compare_unless_written(ledger.settings, NAME, number, "unbuilt")
    abandoned(ledger, number)


def test_a_comparison_of_its_own_reads_the_proved_events_from_the_event_table(
    lake_spark: SparkSession, ledger: TableLedger
) -> None:
    ledger.append_to_table(lake_spark)
    ledger.source.append([FundsAdded(customerId="customer-1", amount=Decimal("1.00"))])
    number = built(lake_spark, ledger, 2, "tabled")

    found = compared_by_both(lake_spark, ledger, number)

    assert found.before is not None
    other = report.read(ledger.settings.home, "with-duckdb")
    assert other is not None
    assert other.event_sources == (
        f"{found.before.events - 1} events from lake/events/{NAME}, as proved against the log; 1 from the log"
    )
    page = report.comparison_path(ledger.settings.home, "with-duckdb").with_suffix(".html").read_text()
    assert f"<dt>Events</dt><dd>{other.event_sources}</dd>" in page
    abandoned(ledger, number)
