"""DuckDB's incremental checks go on from its verified records only if they are what a check has written, by the same rules."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from include.lake.tables import verified_file
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.rebuild.version_cleanup import find_leftovers
from include.replay.check import target
from include.replay.check.run import run_check
from include.replay.fold_sql import NotTranslatedError
from include.settings import Settings
from tests.support.lake.incremental_ledger import CHANGED, UNCHANGED, IncrementalLedger

ANOTHER_PROGRAM = "another program has changed the verified records"


@pytest.fixture(scope="module")
def ledger(settings: Settings, lake_spark: SparkSession) -> IncrementalLedger:
    """A ledger that has passed a full check; each test leaves its lake right."""
    return IncrementalLedger.verified(settings, "verified-file", lake_spark)


@pytest.fixture(scope="module")
def path(ledger: IncrementalLedger) -> Path:
    return Path(verified_file(ledger.settings.lake_root, ledger.name, 1))


def check(ledger: IncrementalLedger, mode: Mode = Mode.INCREMENTAL) -> CheckResult:
    """Check the lake with DuckDB alone."""
    return run_check(ledger.settings, CheckRequest(ledger.name, (StoreName.LAKE,), mode, "duckdb"))


def test_the_records_are_private_and_go_with_the_version(ledger: IncrementalLedger, path: Path) -> None:
    assert path.stat().st_mode & 0o077 == 0
    assert str(path) in find_leftovers(ledger.settings, ledger.name, 1)


def test_changed_records_are_not_used(ledger: IncrementalLedger, path: Path) -> None:
    table = pq.read_table(path)
    rows = table.to_pylist()
    for row in rows:
        row["amount"] += int(row["key"] == UNCHANGED)
    # With the tag in the metadata of its schema.
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)

    result, next_result = check(ledger), check(ledger)

    assert result.passed, result.verdict
    assert (result.request.mode, result.full_check_reason) == (Mode.FULL, ANOTHER_PROGRAM)
    assert next_result.request.mode is Mode.INCREMENTAL


@pytest.mark.parametrize("content", [b"", b"PAR1 no Parquet file"])
def test_a_damaged_file_is_not_used(ledger: IncrementalLedger, path: Path, content: bytes) -> None:
    path.write_bytes(content)

    result, next_result = check(ledger), check(ledger)

    assert result.passed, result.verdict
    assert result.full_check_reason == "no full check has verified the records yet"
    assert next_result.request.mode is Mode.INCREMENTAL


def test_nothing_of_a_failed_check_is_kept(ledger: IncrementalLedger, path: Path) -> None:
    before = path.read_bytes()
    ledger.change(CHANGED[:2])
    right = dict(ledger.records)
    ledger.store(record.plus(cents=int(key == CHANGED[0])) for key, record in right.items())

    failing = check(ledger)
    after = path.read_bytes()
    ledger.store(right.values())
    mended = check(ledger)

    assert [key.key for key in failing.failing_keys] == [CHANGED[0]]
    assert after == before
    assert (mended.passed, mended.request.mode, mended.events) == (True, Mode.INCREMENTAL, 2)
    assert path.read_bytes() != before


def test_records_of_other_rules_are_not_used(
    ledger: IncrementalLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(ledger.model, folds={1: {"amount": "sum(amount)"}})
    monkeypatch.setattr(target, "read_model", lambda *_: other)

    result = check(ledger)

    assert "merge of the read model" in result.full_check_reason


def test_spark_must_check_what_duckdb_does_not(
    ledger: IncrementalLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided = replace(ledger.model, folds={1: {"amount": "sum(amount / 2)"}})
    monkeypatch.setattr(target, "read_model", lambda *_: divided)

    with pytest.raises(NotTranslatedError, match="may have another result in DuckDB"):
        check(ledger, Mode.FULL)
