"""A rebuild's run that somebody has ended in the web page is cleaned up at once, and only such a run."""

import threading
from types import SimpleNamespace

import pytest

from include.airflow import run_hooks

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
