"""A rebuild that is ended while it runs leaves nothing: neither a process that builds its version, nor what it has built."""

import psutil
import pytest

from include.airflow.client import AirflowApi
from include.airflow.names import REBUILD_DAG
from include.airflow.rebuild_runs import abort_rebuild
from include.rebuild.errors import NoRebuildError
from include.rebuild.stage_progress import running_rebuilds
from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.versions.version_record import Stage
from tests.support.airflow.rebuild_runs import MODEL, POLL_S, TIMEOUT_S, record, wait_for
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(900)]

# Of what takes seconds on an idle machine.
ENDED_S = 300.0


def building(number: int) -> list[str]:
    """Return the command lines of processes that build a version."""
    arguments = ["--read-model", MODEL, "--version", str(number)]
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if any(command[i : i + len(arguments)] == arguments for i in range(len(command))):
            found.append(" ".join(command))
    return found


def start_building(stack: Settings, api: AirflowApi) -> tuple[str, int]:
    """Start a rebuild, and wait until a process builds its version."""
    run_id = api.trigger(REBUILD_DAG, {"read_model": MODEL, "reason": "to be ended", "approve": True})
    wait_for(api, REBUILD_DAG, run_id, "register_candidate", "success")
    number = record(stack).versions[-1].number
    wait_until(lambda: building(number), "it is being built", TIMEOUT_S)
    (stage, *_) = running_rebuilds(stack.kafka_connection)
    assert (stage.read_model, stage.version) == (MODEL, number)
    return run_id, number


def assert_ended(stack: Settings, number: int) -> None:
    wait_until(
        lambda: record(stack).stage_of(number) is Stage.ABANDONED and not building(number),
        "nothing builds the version",
        ENDED_S,
        POLL_S,
    )
    wait_until(
        lambda: not find_leftovers(stack, MODEL, number), "nothing is left of the version", ENDED_S, POLL_S
    )
    assert running_rebuilds(stack.kafka_connection) == ()


def test_a_run_that_is_marked_as_failed_leaves_nothing_building(stack: Settings, api: AirflowApi) -> None:
    run_id, number = start_building(stack, api)

    api.mark_run(REBUILD_DAG, run_id, "failed")

    assert_ended(stack, number)
    assert api.run_state(REBUILD_DAG, run_id) == "failed"


def test_an_aborted_rebuild_leaves_nothing(stack: Settings, api: AirflowApi) -> None:
    run_id, number = start_building(stack, api)

    aborted = abort_rebuild(stack, MODEL)

    assert (aborted.run_id, aborted.versions) == (run_id, {MODEL: number})
    assert_ended(stack, number)
    assert api.run_state(REBUILD_DAG, run_id) == "failed"
    assert api.note(REBUILD_DAG, run_id) == f"Aborted: {MODEL} v{number}: to be ended"
    with pytest.raises(NoRebuildError, match=f"No rebuild of {MODEL} is running"):
        abort_rebuild(stack, MODEL)
