"""A rebuild has the same active orders as the log, of which most have ended, and both nodes answer them once it is promoted."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from demo.orders.couriers import Shift, load
from demo.orders.lookups import list_active
from demo.orders.oracle import Location, Oracle
from include.declarations.load import read_model
from include.nodes.local_nodes import local_nodes
from include.settings import Settings
from tests.support.lake.promoted_rebuild import rebuild_and_promote
from tests.support.stream_process import states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

# Three Spark jobs.
pytestmark = [pytest.mark.endurance, pytest.mark.timeout(1800)]
NAME = "order-location"
TIMEOUT_S = 300.0
FIELDS = ("courier", "latitude", "longitude", "status", "placed_on", "located_on")
# Seven hours, longer than an order without an end stays.
SHIFT = Shift(datetime.now(UTC) - timedelta(hours=7), orders=560, active=40, update_every_s=300)


def test_a_rebuild_has_the_active_orders_only(settings: Settings, driver: SharedDriver) -> None:
    end_ms = SHIFT.began_ms + round(SHIFT.orders * SHIFT.interval_ms)
    # The ends of the first orders are lost.
    load(
        settings,
        [u for u in SHIFT.updates() if u.written_ms < end_ms and (u.number > 3 or u.status == "PLACED")],
    )
    oracle = Oracle(settings)
    expected, model = oracle.active(), read_model(NAME, settings.declaration_folders)
    assert 0 < len(expected) < oracle.counts().orders - oracle.counts().ended

    def stored(version: int) -> dict[str, Location]:
        found = states(settings, model, f"{NAME}.v{version}.changelog")
        return {key: tuple(record.state[name] for name in FIELDS) for key, record in found.items()}

    driver.ensure_running()
    wait_until(lambda: stored(1) == expected, "version 1 is exact", timeout_s=TIMEOUT_S)

    rebuild_and_promote(settings, driver, NAME)

    wait_until(lambda: stored(2) == expected, "version 2 is exact", timeout_s=TIMEOUT_S)
    for node in local_nodes(settings):
        is_exact = partial(lambda node: list_active(node) == expected, node)
        wait_until(is_exact, "a node answers the new version", timeout_s=TIMEOUT_S)
