"""After a compaction, a run of the DAG `quality` is started only if a check is due; else a skipped task says why, and when the last one ran."""

import json
import time
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from include.airflow import quality_operators
from include.airflow.quality_operators import TriggerCheckIfDue, check_lock, skip_reason
from include.declarations.load import read_model
from include.files import file_lock
from include.quality.report import reports_directory, summary_path
from include.settings import Settings

MODEL = read_model("balance")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    reports_directory(tmp_path).mkdir(parents=True)
    return Settings()


def checked(settings: Settings, duration_s: float) -> None:
    summary = {
        "request": {"read_model": "balance", "mode": "incremental"},
        "passed": True,
        "duration_s": duration_s,
    }
    summary_path(settings.home, "last").write_text(json.dumps(summary))


def offer() -> None:
    TriggerCheckIfDue(task_id="check_due_balance", read_model="balance").execute({})


def test_a_check_is_due_after_a_change(settings: Settings) -> None:
    assert skip_reason(settings, MODEL, time.time()) is None
    checked(settings, duration_s=0.0)

    offer()

    (asset,) = TriggerCheckIfDue(task_id="check_due_balance", read_model="balance").outlets
    assert asset.name == "check-due/balance"


def test_soon_after_a_long_check_none_is_due(settings: Settings) -> None:
    checked(settings, duration_s=600.0)

    with pytest.raises(AirflowSkipException) as skipped:
        offer()

    text = str(skipped.value)
    assert text.startswith(
        "No check follows: the last check of balance took long, and the next one may begin in 5"
    )
    assert "Its last check (incremental) ended at 20" in text
    assert text.endswith("and passed.")


def test_while_a_check_runs_none_is_due(settings: Settings) -> None:
    with file_lock(check_lock(settings, "balance")), pytest.raises(AirflowSkipException, match="is running"):
        offer()

    offer()


def test_with_nothing_new_none_is_due(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality_operators, "confirm_if_nothing_is_new", lambda *_: True)

    with pytest.raises(
        AirflowSkipException,
        match=r"balance has no event since its last check, and its table is unchanged\. It has not been checked yet\.",
    ):
        offer()
    assert skip_reason(settings, MODEL, time.time()) is not None
