"""A new version of the route behind `loyalty` is promoted in Airflow with the read model and its notifications, and rolled back."""

from pathlib import Path

import pytest

from demo.log_tables import record_count
from demo.pos.branches import LOYALTY, NOTIFICATIONS, Check
from demo.pos.outputs import look_up_points
from include.airflow.client import airflow_api
from include.airflow.names import ROLLBACK_DAG, topic_rebuild_dag
from include.nodes.local_nodes import local_nodes
from include.settings import Settings
from stack.lifecycle import start
from tests.integration.pos_stack.test_other_rate import POLL_S, TIMEOUT_S, live_version, wait_for_task
from tests.integration.pos_stack.tills import Tills
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(2400)]

INVOICES = 600
VERSION_2 = """
from dataclasses import replace

from foldlake import Route

from .loyalty import DECLARATIONS as DECLARED

RULE = "customerType = 'PRIME' AND event_type = 'PosInvoice'"
DECLARATIONS = [replace(one, version=2, where=RULE) for one in DECLARED if isinstance(one, Route)]
"""


def add_route_version(declarations: Path) -> None:
    """Declare version 2 of the route, which leaves cancellations out."""
    (declarations / "loyalty_2.py").write_text(VERSION_2, encoding="utf-8")


def cancellations(settings: Settings, check: Check) -> list[int]:
    """Return the number of cancellations that each node counts over all cards."""
    return [sum(card[4] for card in look_up_points(node, check.cards())) for node in local_nodes(settings)]


def expected(check: Check, *, only_purchases: bool = False) -> dict[str, str]:
    """Return id -> kind of every event of card holders among the invoices that were sent."""
    rows = check.connection.execute("select id, kind from expected_earned").fetchall()
    return {event_id: kind for event_id, kind in rows if kind == "PURCHASE" or not only_purchases}


def require_notified(settings: Settings, check: Check, wanted: dict[str, str]) -> None:
    """Wait until the consumers have as many notifications as wanted; fail unless each of these events has one, and no other."""
    topic = NOTIFICATIONS.output
    wait_until(
        lambda: record_count(settings, topic) >= len(wanted), f"{topic} is complete", TIMEOUT_S, POLL_S
    )
    check.compare(LOYALTY)
    check.compare(NOTIFICATIONS)
    found = check.connection.execute("select id, kind from found_notifications").fetchall()
    assert sorted(found) == sorted(wanted.items())


def test_another_route_is_promoted_with_what_is_folded_behind_it(
    stack: Settings, tills: Tills, declarations: Path
) -> None:
    tills.send(INVOICES)
    check = tills.check()
    wanted = expected(check)
    assert set(wanted.values()) == {"PURCHASE", "CANCELLATION"}
    require_notified(stack, check, wanted)
    tills.require_points(check)
    first = live_version(stack)

    add_route_version(declarations)
    start(stack)
    api, dag_id = airflow_api(stack.home, stack.airflow), topic_rebuild_dag("loyalty-invoices")
    wait_until(lambda: api.dag_exists(dag_id), "Airflow has the DAG", TIMEOUT_S, POLL_S)
    conf = {"reason": "cancelled invoices keep their points", "approve": False, "grace_hours": 1}
    run_id = api.trigger(dag_id, conf)
    wait_for_task(api, dag_id, run_id, "loyalty.promote_lake")
    # Another test of this stack may have built versions before.
    assert live_version(stack) > first
    assert cancellations(stack, check) == [0, 0]

    # Version 2 of the route left the cancellations out from the first event on, and the consumers' topic keeps what it has.
    tills.send(INVOICES)
    check = tills.check()
    later = expected(check, only_purchases=True)
    wanted |= later
    require_notified(stack, check, wanted)
    assert cancellations(stack, check) == [0, 0]

    rollback = api.trigger(ROLLBACK_DAG, {"read_model": "loyalty", "reason": "as before"})
    wait_until(lambda: api.run_state(ROLLBACK_DAG, rollback) == "success", "rolled back", TIMEOUT_S, POLL_S)
    assert live_version(stack) == first
    tills.require_points(check)
    known = expected(check).keys()
    tills.send(INVOICES)
    check = tills.check()
    wanted |= {event_id: kind for event_id, kind in expected(check).items() if event_id not in known}
    require_notified(stack, check, wanted)
    tills.require_points(check)
