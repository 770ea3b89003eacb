"""Spark's verified records are used only if they are what a check has written, with the same fold and merge; no kill or race corrupts them.

Those of DuckDB: tests/integration/lake/engines/test_verified_file.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.declarations.read_model import ReadModel
from include.lake.tables import verified_path
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.rebuild.version_cleanup import find_leftovers
from include.replay.check import check, marks, target
from include.replay.key_expectations import folds_to
from include.settings import Settings
from spark_jobs import quality_check
from spark_jobs.folding.expressions.columns import field_columns
from spark_jobs.quality.verified_table import VerifiedTable
from tests.support.lake.checked_ledger import failed
from tests.support.lake.incremental_ledger import (
    CHANGED,
    CUSTOMERS,
    UNCHANGED,
    IncrementalLedger,
    assert_only_changes_were_checked,
)

# Each one takes a minute or more.
pytestmark = pytest.mark.endurance


class SparkLedger(IncrementalLedger):
    """A ledger that only Spark checks: the tests change what it keeps, and the merge that it computes."""

    def check(
        self, spark: SparkSession, *stores: StoreName, mode: Mode = Mode.FULL, run_id: str = "test"
    ) -> CheckResult:
        """Check these stores with Spark."""
        return quality_check.check(spark, self.settings, CheckRequest(self.name, stores, mode, run_id))


def with_merge(
    ledger: IncrementalLedger, merge: Callable[[], Mapping[str, Column]] | None
) -> Callable[..., ReadModel]:
    """Return a function that declares the ledger's read model with another merge, or without any."""
    # A fold in Python has no derived merge.
    folds = {1: partial(field_columns, ledger.model.folds[1])}
    model = replace(ledger.model, folds=folds, merges={} if merge is None else {1: merge})
    return lambda *_: model


def test_changed_verified_records_are_not_used(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = SparkLedger.verified(settings, "tampered", lake_spark)
    path = verified_path(settings.lake_root, ledger.name, 1)
    table = DeltaTable.forPath(lake_spark, path)
    table.update(col("key") == UNCHANGED, {"amount": col("amount") + 1})

    result = ledger.check_changed()

    assert result.passed, result.verdict
    assert result.request.mode is Mode.FULL
    assert "another program has changed the verified records" in result.full_check_reason
    assert ledger.check_changed().request.mode is Mode.INCREMENTAL
    assert path in find_leftovers(settings, ledger.name, 1)


def test_a_changed_merge_voids_what_was_verified(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SparkLedger.verified(settings, "changed-merge", lake_spark)
    with monkeypatch.context() as patch:
        patch.setattr(target, "read_model", with_merge(ledger, None))
        without = ledger.check_changed()
    with monkeypatch.context() as patch:
        merge = with_merge(ledger, lambda: {"amount": F.sum(col("amount") + 0)})
        patch.setattr(target, "read_model", merge)
        other = ledger.check_changed()

    assert (without.request.mode, without.full_check_reason) == (Mode.FULL, "fold revision 1 has no merge")
    assert other.request.mode is Mode.FULL
    assert "merge of the read model" in other.full_check_reason


def test_a_wrong_merge_fails_the_incremental_check_only(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SparkLedger(settings, "wrong-merge")
    ledger.spark = lake_spark
    wrong = with_merge(ledger, lambda: {"amount": F.max("amount")})
    monkeypatch.setattr(target, "read_model", wrong)
    ledger.append(CUSTOMERS, 2)
    ledger.store(ledger.records.values())
    assert ledger.check_all().passed
    changed = CHANGED[:4]
    ledger.change(changed)
    ledger.store(ledger.records.values())

    incremental, full = ledger.check_changed(), ledger.check_all()

    assert incremental.request.mode is Mode.INCREMENTAL
    assert failed(incremental) == {folds_to("amount"): len(changed)}
    assert full.passed, full.verdict


def test_a_check_killed_before_it_wrote_leaves_the_records_before(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SparkLedger.verified(settings, "killed", lake_spark)
    ledger.change_and_store()

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VerifiedTable, "_save", kill)
        with pytest.raises(KeyboardInterrupt):
            ledger.check_changed()
    result = ledger.check_changed()

    assert_only_changes_were_checked(result)


def test_of_two_checks_at_once_the_first_to_end_is_kept(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SparkLedger.verified(settings, "at-once", lake_spark)
    ledger.change_and_store()
    keep, others = marks.keep_verified, iter((True, False))

    def after_another_check(*arguments: Any) -> Any:  # noqa: ANN401 - those of the function that it replaces
        if next(others):
            assert ledger.check_changed("another").passed
        return keep(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(check, "keep_verified", after_another_check)
        assert ledger.check_changed("first").passed
    ledger.change_and_store()
    after = ledger.check_changed()

    assert_only_changes_were_checked(after)
