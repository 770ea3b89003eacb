"""Which engine compares the versions of a rebuild, and what an error means. The comparison itself is in tests/integration/lake/comparison."""

from pathlib import Path

import pytest

from include.quality.check_run import NEEDS_SPARK, PASSED, SparkNeededError, exit_status
from include.replay.check import version_comparison
from include.replay.compare_versions import compare_versions
from include.replay.quality_check import CannotCheckError
from include.settings import CheckEngine, Settings

REMOTE = "s3://somewhere/lake"


def compare(settings: Settings) -> None:
    compare_versions(settings, "balance", 2, "rebuild-balance-v2")


def test_spark_alone_compares_if_the_setting_says_so(tmp_path: Path) -> None:
    with pytest.raises(SparkNeededError, match="FOLDLAKE_CHECK_ENGINE is spark"):
        compare(Settings.of(home=tmp_path, check_engine=CheckEngine.SPARK))


def test_what_duckdb_cannot_compare_is_handed_to_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings.of(home=tmp_path, lake_dir=REMOTE)

    assert exit_status(lambda: compare(settings)) == NEEDS_SPARK

    assert "the lake is not on a file system of this machine" in capsys.readouterr().out


def test_without_spark_a_comparison_that_duckdb_cannot_do_is_an_error(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path, lake_dir=REMOTE, check_engine=CheckEngine.DUCKDB)

    with pytest.raises(CannotCheckError, match="the lake is not on a file system of this machine"):
        compare(settings)


@pytest.mark.parametrize("engine", [CheckEngine.AUTO, CheckEngine.DUCKDB])
def test_a_comparison_with_duckdb_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: CheckEngine
) -> None:
    compared: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        version_comparison, "compare_unless_written", lambda *given: compared.append(given[1:])
    )

    assert exit_status(lambda: compare(Settings.of(home=tmp_path, check_engine=engine))) == PASSED

    assert compared == [("balance", 2, "rebuild-balance-v2")]
