"""The verdict is written last: a check that is killed earlier has none and is repeated as a whole."""

from pathlib import Path

import pytest

from include.quality import report, results
from include.quality.check import CheckResult, UncheckableError
from include.quality.check_run import publish
from include.quality.report import Outcome, verdict_of
from include.settings import Settings
from tests.unit.quality.test_report import FAILED, PASSED, REQUEST


class Steps:
    """The steps of a check in order, and whether the page and the verdict existed at each step."""

    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[tuple[str, bool, bool]] = []
        self._settings = settings
        monkeypatch.setattr(results, "record", lambda *_: self.take("record"))
        monkeypatch.setattr(report, "alert", lambda *_: self.take("alert"))

    def take(self, name: str) -> None:
        """Record a step, and whether the page and the verdict exist."""
        page = report.report_path(self._settings.home, REQUEST.run_id).exists()
        self.taken.append((name, page, verdict_of(self._settings.home, REQUEST.run_id) is not None))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path)


@pytest.fixture
def steps(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(settings, monkeypatch)


def test_the_order_is_page_results_alert_verdict(settings: Settings, steps: Steps) -> None:
    publish(settings, REQUEST, lambda: FAILED)

    assert steps.taken == [("record", True, False), ("alert", True, False)]
    verdict = verdict_of(settings.home, REQUEST.run_id)
    assert verdict is not None
    assert verdict.outcome is Outcome.FAILED


def test_a_passed_check_sends_no_alert(settings: Settings, steps: Steps) -> None:
    publish(settings, REQUEST, lambda: PASSED)

    assert steps.taken == [("record", True, False)]


@pytest.mark.usefixtures("steps")
def test_without_stored_results_there_is_no_verdict(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(results, "record", refuse)

    with pytest.raises(OSError, match="no space left"):
        publish(settings, REQUEST, lambda: FAILED)

    assert verdict_of(settings.home, REQUEST.run_id) is None


def test_the_verdict_of_an_impossible_check_is_the_reason(settings: Settings, steps: Steps) -> None:
    error = UncheckableError.of_several_partitions("balance", {"k": (0, 3), "l": (1, 2)}, 5, 1_200)

    def refuse() -> CheckResult:
        raise error

    with pytest.raises(
        UncheckableError, match=r"key 'k' in partitions 0, 3; key 'l' in partitions 1, 2; and 3 more"
    ):
        publish(settings, REQUEST, refuse)

    verdict = verdict_of(settings.home, REQUEST.run_id)
    assert verdict is not None
    assert (verdict.outcome, verdict.summary) == (Outcome.UNCHECKABLE, str(error))
    assert "5 of 1,200 keys" in str(error)
    assert "declare `rekey=True` in the read model" in str(error)
    assert steps.taken == []
