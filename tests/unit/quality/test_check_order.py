"""The verdict is written last: a check that is killed earlier has none and is repeated as a whole."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from include.quality import report, results
from include.quality.check import CheckResult, UncheckableError
from include.quality.report import Outcome, verdict_of
from include.settings import Settings
from spark_jobs import quality_check as quality
from tests.unit.quality.test_report import FAILED, PASSED, REQUEST

NO_SPARK: Any = None


class Steps:
    """The steps of a check in order, and whether the page and the verdict existed at each step."""

    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch, result: CheckResult) -> None:
        self.taken: list[tuple[str, bool, bool]] = []
        self._settings = settings
        monkeypatch.setattr(quality, "run_check", lambda *_: result)
        monkeypatch.setattr(results, "record", lambda *_: self.take("record"))
        monkeypatch.setattr(report, "alert", lambda *_: self.take("alert"))

    def take(self, name: str) -> None:
        """Record a step, and whether the page and the verdict exist."""
        page = report.report_path(self._settings.home, REQUEST.run_id).exists()
        self.taken.append((name, page, verdict_of(self._settings.home, REQUEST.run_id) is not None))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path)


def test_the_order_is_page_results_alert_verdict(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(settings, monkeypatch, FAILED)

    quality.check(NO_SPARK, settings, REQUEST)

    assert steps.taken == [("record", True, False), ("alert", True, False)]
    verdict = verdict_of(settings.home, REQUEST.run_id)
    assert verdict is not None
    assert verdict.outcome is Outcome.FAILED


def test_a_passed_check_sends_no_alert(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(settings, monkeypatch, PASSED)

    quality.check(NO_SPARK, settings, REQUEST)

    assert steps.taken == [("record", True, False)]


def test_without_stored_results_there_is_no_verdict(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Steps(settings, monkeypatch, FAILED)

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(results, "record", refuse)

    with pytest.raises(OSError, match="no space left"):
        quality.check(NO_SPARK, settings, REQUEST)

    assert verdict_of(settings.home, REQUEST.run_id) is None


def test_the_verdict_of_an_impossible_check_is_the_reason(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(settings, monkeypatch, replace(PASSED))
    error = UncheckableError.of_several_partitions("balance", {"k": (0, 3), "l": (1, 2)}, 5, 1_200)

    def refuse(*_: object) -> CheckResult:
        raise error

    monkeypatch.setattr(quality, "run_check", refuse)

    with pytest.raises(
        UncheckableError, match=r"key 'k' in partitions 0, 3; key 'l' in partitions 1, 2; and 3 more"
    ):
        quality.check(NO_SPARK, settings, REQUEST)

    verdict = verdict_of(settings.home, REQUEST.run_id)
    assert verdict is not None
    assert (verdict.outcome, verdict.summary) == (Outcome.UNCHECKABLE, str(error))
    assert "5 of its 1,200 keys" in str(error)
    assert "declare `rekey=True` in the read model" in str(error)
    assert steps.taken == []
