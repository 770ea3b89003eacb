"""A rebuild's run that somebody has ended is cleaned up at once, and only such a run; requested runs come before scheduled ones."""

import threading
from types import SimpleNamespace

import pytest

from include.airflow import run_hooks
from include.airflow.run_hooks import RequestedFirst
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
