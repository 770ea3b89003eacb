"""A rebuild started over REST under load: it is promoted, a second one is refused, and a rollback restores the old version."""

import itertools
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from http import HTTPStatus

import pytest

from cli.rebuild import rebuild_run
from include.airflow.client import AirflowApi, AirflowUnavailableError
from include.airflow.names import COMPACTION_DAG, QUALITY_DAG, REBUILD_DAG, ROLLBACK_DAG
from include.declarations.load import read_model
from include.kafka.events import event_key
from include.lake.status import read_model_status
from include.read_models.balance.events import FundsAdded
from include.rebuild.comparison import report
from include.rebuild.retirement import retire_version
from include.rebuild.version_cleanup import find_leftovers
from include.settings import CHECKOUT, Settings, settings_environment
from include.versions.transitions import RebuildRunningError
from include.versions.version_record import Stage
from tests.support.airflow.rebuild_runs import MODEL, POLL_S, TIMEOUT_S, record, states, task_log, wait_for
from tests.support.lake.comparison_example import EXAMPLE
from tests.support.rebuild.rebuild_readers import Readers
from tests.support.repetition import repeated
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

# A rebuild runs five Spark jobs in sequence, here on a machine with other load.
pytestmark = pytest.mark.timeout(2400)

KEYS = [f"under-load-{number}" for number in range(50)]
CENTS = 125
EVENTS_PER_S = 50
TICK_S = 0.5
ANSWER_DELAY_S = 3.0


@pytest.fixture
def under_load(stack: Settings) -> Iterator[Settings]:
    """The same stack while events arrive."""
    source = EventSource(stack, MODEL)
    events = [FundsAdded(customerId=key, amount=Decimal(CENTS) / 100) for key in KEYS]
    values = [(event_key(event), source.serializer.serialize(event)) for event in events]
    endless = itertools.cycle(values)

    def produce() -> None:
        for value in itertools.islice(endless, int(EVENTS_PER_S * TICK_S)):
            source.append_raw(*value)

    def answered() -> bool:
        with Readers(stack.query_ports, MODEL, KEYS, CENTS) as readers:
            wait_until(
                lambda: readers.versions.total() + len(readers.faults) > 2 * len(KEYS), "every key is read"
            )
        return not readers.faults

    with repeated(produce, TICK_S):
        wait_until(answered, "all keys are folded", TIMEOUT_S)
        yield stack


def approval_text(api: AirflowApi, run_id: str) -> str:
    """Return the text that a person sees who is asked for approval."""
    path = f"dags/{REBUILD_DAG}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    return str(api._call("GET", path)["body"])


def checks(api: AirflowApi) -> dict[str, str]:
    """Return the runs of the quality check that the lake's asset triggered, and their states."""
    runs = api.runs(QUALITY_DAG, limit=50)
    return {run_id: state for run_id, state in runs.items() if run_id.startswith("asset_triggered")}


def answer(api: AirflowApi, run_id: str, option: str, state: str) -> None:
    """Answer the approval like a person: after a delay, and again if the task asks again. See OptionalApproval."""
    # When to answer; infinite while the task is not waiting for an answer.
    answer_at_s = math.inf

    def answered() -> bool:
        nonlocal answer_at_s
        now = states(api, REBUILD_DAG, run_id)["approve"]
        if now != "awaiting_input":
            answer_at_s = math.inf
        elif answer_at_s == math.inf:
            answer_at_s = time.monotonic() + ANSWER_DELAY_S
        elif time.monotonic() >= answer_at_s:
            answer_at_s = math.inf
            with suppress(AirflowUnavailableError):  # already answered
                api.answer(REBUILD_DAG, run_id, "approve", option)
        return now == state

    wait_until(answered, f"approve is {state}", TIMEOUT_S, POLL_S)


def refused(api: AirflowApi, conf: dict[str, object], reason: str) -> None:
    """Trigger a rebuild that is refused: no task fails, and the run's note says why."""
    run_id = api.trigger(REBUILD_DAG, conf)
    wait_until(
        lambda: api.run_state(REBUILD_DAG, run_id) in ("success", "failed"), "the run ends", TIMEOUT_S, POLL_S
    )
    assert set(states(api, REBUILD_DAG, run_id).values()) == {"skipped"}
    assert api.note(REBUILD_DAG, run_id).startswith(f"Refused: {reason}")
    assert f"Refused: {reason}" in task_log(api, run_id, "register_candidate")


def lake_version(settings: Settings) -> int | None:
    status = read_model_status(settings.lake_root, settings.kafka_connection, read_model(MODEL), 1)
    return None if status is None else status.table.version


def assert_lake_follows(settings: Settings, number: int) -> None:
    """Wait until the lake's table contains a version that has just become live."""
    wait_until(lambda: lake_version(settings) == number, "the lake follows", TIMEOUT_S, POLL_S)


def test_rebuild_under_load_is_approved_promoted_and_rolled_back(
    under_load: Settings, api: AirflowApi
) -> None:
    before = record(under_load)
    assert before.live is not None
    old, number = before.live.number, max(v.number for v in before.versions) + 1
    with Readers(under_load.query_ports, MODEL, KEYS, CENTS) as readers:
        conf = {"read_model": MODEL, "reason": "under load", "approve": True, "grace_hours": 1}
        run_id = api.trigger(REBUILD_DAG, conf)
        wait_for(api, REBUILD_DAG, run_id, "register_candidate", "success")
        is_building = f"The rebuild {run_id} is building v{number} of balance"
        runs = api.runs(REBUILD_DAG)
        with pytest.raises(RebuildRunningError, match=re.escape(is_building)):
            rebuild_run(under_load, conf | {"reason": "at the same time"})
        assert api.runs(REBUILD_DAG).keys() == runs.keys(), "the command makes no run"
        refused(api, conf | {"reason": "at the same time"}, is_building)
        wait_for(api, REBUILD_DAG, run_id, "approve", "awaiting_input")
        assert set(readers.versions) == {old}
        # The same fold: no key differs, although events arrive all the time.
        request = approval_text(api, run_id)
        nothing = rf"\*\*0 of [\d,]+ keys differ \(0 %\)\*\* between v{number} and the live v{old}"
        assert re.search(nothing, request), request
        assert "| changelog |" in request
        # Every table of the lake is in the queue before the promotion.
        api.trigger(COMPACTION_DAG, {"read_model": "all", "optimize": False})
        answer(api, run_id, "Approve", "success")
        wait_for(api, REBUILD_DAG, run_id, "promote", "success")
        assert_lake_follows(under_load, number)
        wait_until(lambda: readers.versions[number] > 0, "readers get the new version")
        wait_until(lambda: api.run_state(REBUILD_DAG, run_id) == "success", "the run ends", TIMEOUT_S, POLL_S)
        after = record(under_load)
        assert [v.stage for v in after.versions if v.number in (old, number)] == [Stage.PREVIOUS, Stage.LIVE]

        rollback = api.trigger(ROLLBACK_DAG, {"read_model": MODEL, "reason": "back"})
        wait_until(
            lambda: api.run_state(ROLLBACK_DAG, rollback) == "success", "rolled back", TIMEOUT_S, POLL_S
        )
        live = record(under_load).live
        assert live is not None
        assert live.number == old
        assert_lake_follows(under_load, old)
    assert readers.faults == []
    retire_version(under_load, MODEL, number)
    assert find_leftovers(under_load, MODEL, number) == []


def test_a_quality_check_follows_the_promotion_in_the_lake(stack: Settings, api: AirflowApi) -> None:
    assert record(stack).live is not None
    wait_until(
        lambda: "success" in checks(api).values(),
        "a check after the promotion has passed",
        TIMEOUT_S,
        POLL_S,
    )
    assert "failed" not in checks(api).values(), "no false alarm before the lake has followed the promotion"


def skip(api: AirflowApi, run_id: str, task_id: str) -> None:
    """Mark a task as successful, as an operator can in the Airflow UI."""
    api._call(
        "PATCH", f"dags/{REBUILD_DAG}/dagRuns/{run_id}/taskInstances/{task_id}", json={"new_state": "success"}
    )


def test_rebuild_beyond_its_thresholds_asks_a_person_and_is_abandoned_when_rejected(
    stack: Settings, api: AirflowApi
) -> None:
    conf = {"read_model": MODEL, "reason": "to be rejected", "approve": False, "max_changed_percent": 5}
    run_id = api.trigger(REBUILD_DAG, conf)
    wait_for(api, REBUILD_DAG, run_id, "register_candidate", "success")
    # The stream driver then folds the candidate from the first event; a rebuild to be rejected needs no verification.
    # The last task comes first: otherwise Airflow may start a task before it is marked.
    for task_id in ("compare", "verify", "build_staging", "catch_up"):
        skip(api, run_id, task_id)
    number = record(stack).versions[-1].number
    beyond = replace(EXAMPLE, run_id=f"rebuild-{MODEL}-v{number}", new_fields=())
    report.write(stack.home, beyond)
    wait_for(api, REBUILD_DAG, run_id, "approve", "awaiting_input")
    assert "Thresholds of the form are exceeded" in approval_text(api, run_id)
    assert r"400 of 4,003 keys differ \(9.99 %\), and at most 5 % may" in approval_text(api, run_id)
    answer(api, run_id, "Reject", "failed")
    wait_until(lambda: api.run_state(REBUILD_DAG, run_id) == "failed", "the run ends", TIMEOUT_S, POLL_S)
    now = states(api, REBUILD_DAG, run_id)
    assert (now["approve"], now["promote"], now["abandon"]) == ("failed", "upstream_failed", "success")
    version = record(stack).version(number)
    assert version is not None
    assert version.stage is Stage.ABANDONED
    assert find_leftovers(stack, MODEL, number) == []


def test_dry_run_shows_what_changes_and_is_abandoned_without_being_handed_over(
    stack: Settings, api: AirflowApi
) -> None:
    number = max(version.number for version in record(stack).versions) + 1
    earlier = set(api.runs(REBUILD_DAG, limit=50))
    command = [sys.executable, "-m", "cli", "rebuild", MODEL, "--dry-run", "--max-changed-percent", "5"]
    environment = {
        **os.environ,
        **settings_environment(stack),
        "PYTHONPATH": str(CHECKOUT),
        "COLUMNS": "120",
    }
    with subprocess.Popen(
        command, env=environment, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        wait_until(lambda: record(stack).version(number) is not None, "it is registered", TIMEOUT_S, POLL_S)
        (run_id,) = set(api.runs(REBUILD_DAG, limit=50)) - earlier
        report.write(stack.home, replace(EXAMPLE, run_id=f"rebuild-{MODEL}-v{number}"))
        # What they do is the same in every rebuild.
        for task_id in ("compare", "verify", "build_staging", "catch_up"):
            skip(api, run_id, task_id)
        output, _ = process.communicate(timeout=TIMEOUT_S)

    # A threshold is exceeded.
    assert process.returncode == 1, output
    assert "395 keys changed, 3 new, 2 gone: 9.99 % of 4,003." in output
    assert "Threshold exceeded: 400 of 4,003 keys differ" in output
    assert "the live version was not touched" in output
    wait_until(lambda: api.run_state(REBUILD_DAG, run_id) == "success", "the run ends", TIMEOUT_S, POLL_S)
    now = states(api, REBUILD_DAG, run_id)
    assert (now["hand_over"], now["promote"], now["abandon"]) == ("skipped", "skipped", "success")
    version = record(stack).version(number)
    assert version is not None
    assert (version.run_id, version.stage) == (run_id, Stage.ABANDONED)
    assert find_leftovers(stack, MODEL, number) == []


def test_misspelt_field_is_refused_before_the_rebuild_starts(stack: Settings, api: AirflowApi) -> None:
    before = record(stack)
    refused(api, {"read_model": MODEL, "reason": "x", "aprove": False}, "Unknown field: aprove")
    assert record(stack) == before


def test_airflow_accepts_a_run_id_once(api: AirflowApi) -> None:
    conf = {"read_model": MODEL, "reason": "x", "aprove": False}
    run_id = api.trigger(REBUILD_DAG, conf)

    # As `trigger` does when Airflow has started the run, but has not responded in time.
    with pytest.raises(AirflowUnavailableError) as refused:
        api._call(
            "POST",
            f"dags/{REBUILD_DAG}/dagRuns",
            json={"dag_run_id": run_id, "logical_date": None, "conf": conf, "note": None},
        )

    assert refused.value.status == HTTPStatus.CONFLICT
