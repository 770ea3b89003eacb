"""A rebuild makes the same states from the log, verified against staging, and repeats no alert."""

import pytest

from demo.log_tables import record_count
from demo.logs.comparison import Check
from include.declarations.load import read_model
from include.settings import Settings
from include.settings.systems import system_folder
from tests.integration.logs.test_branches import are_exact
from tests.support.lake.promoted_rebuild import rebuild_and_promote
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

# Two rebuilds, each with three Spark jobs.
pytestmark = [pytest.mark.endurance, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("name", ["product-views", "browser-windows"])
def test_a_rebuild_gives_the_same_states(
    settings: Settings, driver: SharedDriver, check: Check, name: str
) -> None:
    driver.ensure_running()
    wait_until(lambda: are_exact(settings, check), "all states are exact", timeout_s=300, poll_s=3)
    model = read_model(name, (system_folder("logs"),))
    right = states(settings, model, f"{name}.v1.changelog")
    alerts = record_count(settings, "popular-products")

    rebuild_and_promote(settings, driver, name)

    found = states(settings, model, f"{name}.v2.changelog")
    assert {k: r.state for k, r in found.items()} == {k: r.state for k, r in right.items()}
    if name == "product-views":
        # The candidate has sent its alerts to its own topic, and consumers get none again.
        wait_until(
            lambda: record_count(settings, "popular-products.v2") == alerts, "its alerts", timeout_s=240
        )
        assert record_count(settings, "popular-products") == alerts
        # The counts are those of the new live version from the next tick on.
        wait_until(
            lambda: ("version", b"2") in (records_of(settings, "product-view-counts")[-1].headers() or []),
            "a tick of version 2",
            timeout_s=60,
        )
