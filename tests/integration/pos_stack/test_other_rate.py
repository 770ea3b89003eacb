"""A rebuild of `loyalty` at three per cent is promoted and rolled back: lookups and notifications are right at each step."""

from decimal import Decimal
from pathlib import Path

import pytest

from demo.pos.oracle import RATE
from include.airflow.client import AirflowApi, airflow_api
from include.airflow.names import REBUILD_DAG, ROLLBACK_DAG
from include.settings import Settings
from include.versions.registry import VersionRegistry
from stack.lifecycle import start
from tests.integration.pos_stack.tills import Tills
from tests.support.documentation.page_blocks import blocks
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(2400)]

OTHER_RATE = Decimal("0.03")
RATES = 'RATES = {1: "0.02"}'
PAGE = "docs/pos.md"
INVOICES = 600
TIMEOUT_S = 900.0
# Each poll costs Airflow tens of milliseconds on the two cores that its tasks need.
POLL_S = 1.0


def add_rate(declarations: Path) -> None:
    """Declare three per cent as fold revision 2, with the line of the page."""
    model = declarations / "loyalty.py"
    text = model.read_text(encoding="utf-8")
    assert text.count(RATES) == 1
    (line,) = (block.text.strip() for block in blocks(PAGE, "python") if block.text.startswith("RATES = "))
    model.write_text(text.replace(RATES, line), encoding="utf-8")


def live_version(settings: Settings) -> int:
    with VersionRegistry(settings.kafka_connection) as registry:
        live = registry.read()["loyalty"].live
    assert live is not None
    return live.number


def wait_for_task(api: AirflowApi, dag_id: str, run_id: str, task_id: str) -> None:
    """Wait until a task has succeeded; fail if its run fails."""

    def is_done() -> bool:
        states = {task.task_id: task.state for task in api.tasks(dag_id, run_id)}
        assert api.run_state(dag_id, run_id) != "failed", f"states: {states}"
        return states.get(task_id) == "success"

    wait_until(is_done, f"{task_id} has succeeded", TIMEOUT_S, POLL_S)


def send_and_look_up(tills: Tills, rate: Decimal) -> None:
    """Send further invoices; fail unless both nodes come to answer at this rate for all of them."""
    tills.send(INVOICES)
    check = tills.check(rate)
    tills.wait_until_written(check)
    tills.require_points(check)


def require_rates(tills: Tills, *expected: Decimal) -> None:
    """Fail unless the totals of each partition's notifications are at these rates, one after the other."""
    for partition in tills.notifications((RATE, OTHER_RATE)):
        steps = list(expected)
        for event_id, rates in partition:
            while steps and steps[0] not in rates:
                steps.pop(0)
            assert steps, f"{event_id} is at {rates}, after notifications at all of {expected}"
        # A handover reaches every partition.
        assert steps == [expected[-1]], f"the last notifications are not at {expected[-1]}"


def test_another_rate_is_promoted_and_rolled_back(stack: Settings, tills: Tills, declarations: Path) -> None:
    send_and_look_up(tills, RATE)
    require_rates(tills, RATE)
    first = live_version(stack)

    add_rate(declarations)
    start(stack)
    api = airflow_api(stack.home, stack.airflow)
    conf = {"read_model": "loyalty", "reason": "three per cent", "approve": False, "grace_hours": 1}
    run_id = api.trigger(REBUILD_DAG, conf)
    wait_for_task(api, REBUILD_DAG, run_id, "promote")
    assert live_version(stack) == first + 1
    # Every invoice counts at the new rate, as if it had always been that.
    tills.require_points(tills.check(OTHER_RATE))
    send_and_look_up(tills, OTHER_RATE)
    require_rates(tills, RATE, OTHER_RATE)

    rollback = api.trigger(ROLLBACK_DAG, {"read_model": "loyalty", "reason": "back to two per cent"})
    wait_until(lambda: api.run_state(ROLLBACK_DAG, rollback) == "success", "rolled back", TIMEOUT_S, POLL_S)
    assert live_version(stack) == first
    tills.require_points(tills.check(RATE))
    send_and_look_up(tills, RATE)
    require_rates(tills, RATE, OTHER_RATE, RATE)
