"""A rebuild's run that somebody has ended is cleaned up at once, and only such a run; requested runs come before scheduled ones."""

import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from include.airflow import run_hooks
from include.airflow.names import SCHEDULER_STARTED
from include.airflow.run_hooks import RequestedFirst, postpone_after_start
from include.boot_clock import boot_s
from include.rebuild.stages.build import VERIFY
from include.rebuild.stages.promotion import PROMOTE_LAKE

MANUALLY = "Dag Run's state was manually set to `failed`."


@pytest.mark.parametrize(
    ("dag_id", "msg", "cleaned"),
    [
        ("rebuild", MANUALLY, ["run-a"]),
        ("rebuild_topic.postings", MANUALLY, ["run-a"]),
        ("compaction", MANUALLY, []),
        ("rebuild", "task_failure", []),
    ],
)
def test_a_run_that_was_ended_by_hand_is_cleaned_up(
    dag_id: str, msg: str, cleaned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[str] = []

    class AtOnce:
        def __init__(self, *, target: object, args: tuple[str], daemon: bool) -> None:
            assert target is run_hooks._request_clean_up
            assert daemon
            self._args = args

        def start(self) -> None:
            requested.extend(self._args)

    monkeypatch.setattr(threading, "Thread", AtOnce)
    run = SimpleNamespace(dag_id=dag_id, run_id="run-a")

    run_hooks.on_dag_run_failed(run, msg)

    assert requested == cleaned


@pytest.mark.parametrize("run_id", ["scheduled__2026-05-01", "asset_triggered__2026-05-01_a"])
def test_an_automatic_run_begins_some_time_after_airflow(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCHEDULER_STARTED, str(boot_s() - 20))

    with pytest.raises(AirflowRescheduleException) as postponed:
        postpone_after_start(run_id, 120.0)

    left_s = (postponed.value.reschedule_date - datetime.now(UTC)).total_seconds()
    assert 95 < left_s <= 100
    postpone_after_start(run_id, 20.0)


def test_a_requested_run_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCHEDULER_STARTED, str(boot_s()))
    postpone_after_start("manual__2026-05-01", 120.0)


def test_a_run_of_another_airflow_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SCHEDULER_STARTED, raising=False)
    postpone_after_start("scheduled__2026-05-01", 120.0)


def weight(run_id: str, priority: int = 1) -> int:
    return RequestedFirst().get_weight(
        SimpleNamespace(run_id=run_id, task=SimpleNamespace(priority_weight=priority))
    )


@pytest.mark.parametrize(
    "periodic", ["scheduled__2026-05-01T00:00:00+00:00", "asset_triggered__2026-05-01_a"]
)
def test_a_requested_run_comes_before_every_periodic_one(periodic: str) -> None:
    assert weight("manual__2026-05-01T00:00:00+00:00") > weight(periodic, PROMOTE_LAKE.priority)


def test_the_lake_follows_a_promotion_before_anything_else_is_appended_to_it() -> None:
    run_id = "manual__2026-05-01T00:00:00+00:00"
    assert weight(run_id, PROMOTE_LAKE.priority) > weight(run_id, VERIFY.priority)
