"""A ledger whose lake table is verified, and then gets new events of some customers."""

from collections.abc import Iterable
from decimal import Decimal

from pyspark.sql import SparkSession

from include.quality.check import CheckResult, Mode, StoreName
from include.settings import Settings
from tests.support.lake.checked_ledger import CheckedLedger, Record

CUSTOMERS, EVENTS_EACH = 20, 3
NEW = "new customer"
CHANGED = (*(f"customer {number}/é" for number in range(4)), NEW)
UNCHANGED = "customer 10/é"


class IncrementalLedger(CheckedLedger):
    """A ledger of which incremental checks of the lake are run."""

    spark: SparkSession

    @classmethod
    def verified(cls, settings: Settings, name: str, spark: SparkSession) -> "IncrementalLedger":
        """Return a ledger whose correct lake has passed a full check."""
        ledger = cls(settings, name)
        ledger.spark = spark
        ledger.append(CUSTOMERS, EVENTS_EACH)
        ledger.store(ledger.records.values())
        result = ledger.check_all()
        assert result.passed, result.verdict
        return ledger

    def change(self, keys: Iterable[str] = CHANGED) -> None:
        """Append an event of 7.00 for each of these customers."""
        for key in keys:
            self.add(key, Decimal(7))
        self.source.flush()

    def change_and_store(self) -> None:
        """Append an event for each customer of CHANGED, and bring the lake up to date."""
        self.change()
        self.store(self.records.values())

    def store(self, records: Iterable[Record]) -> None:
        """Replace the rows of the lake."""
        self.write_lake(self.spark, records)

    def check_all(self) -> CheckResult:
        """Run a full check of the lake."""
        return self.check(self.spark, StoreName.LAKE)

    def check_changed(self, run_id: str = "incremental") -> CheckResult:
        """Run an incremental check of the lake."""
        return self.check(self.spark, StoreName.LAKE, mode=Mode.INCREMENTAL, run_id=run_id)


def assert_only_changes_were_checked(result: CheckResult) -> None:
    """Assert that an incremental check of one event for each customer of CHANGED has passed."""
    assert result.passed, result.verdict
    assert (result.request.mode, result.events) == (Mode.INCREMENTAL, len(CHANGED))
