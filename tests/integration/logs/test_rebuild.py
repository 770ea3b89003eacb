"""A rebuild makes the same states from the log, verified against staging, and repeats no alert."""

import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from demo.log_tables import record_count
from demo.logs.comparison import Check
from include.declarations.read_model import read_model
from include.settings import Settings
from include.settings.systems import system_folder
from include.versions.changes import change_live
from include.versions.registry import VersionRegistry
from include.versions.transitions import promote
from tests.integration.logs.test_branches import are_exact
from tests.support.lake.stage_processes import StageProcesses
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

# Two rebuilds, each with three Spark jobs.
pytestmark = [pytest.mark.endurance, pytest.mark.timeout(1800)]
STAGE_TIMEOUT_S = 300.0


def require_success(process: "subprocess.Popen[bytes]") -> None:
    assert process.wait(STAGE_TIMEOUT_S) == 0, f"{process.args!r}: see stages.log"


def rebuild(settings: Settings, driver: SharedDriver, name: str) -> None:
    """Build version 2 of a read model, verify it, and make it live."""
    with (settings.home / "logs" / "stages.log").open("ab") as log:
        stages = StageProcesses(settings, name, log)
        require_success(stages.action("register_candidate", "--run-id", "rebuild", "--reason", "a test"))
        version = ("--version", "2")
        require_success(stages.stream_job("catch_up", *version))
        require_success(stages.lake_job("build_staging", *version))
        both = ("--stores", "changelog,staging", "--run-id", f"verify-{name}")
        require_success(stages.lake_job("quality_check", *version, *both))
        driver.ensure_running()
        require_success(stages.action("hand_over", *version))
    now = datetime.now(UTC)
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        change_live(
            registry,
            name,
            lambda record: promote(record, 2, now=now, retire_live_after=now + timedelta(days=1)),
        )


@pytest.mark.parametrize("name", ["product-views", "browser-windows"])
def test_a_rebuild_gives_the_same_states(
    settings: Settings, driver: SharedDriver, check: Check, name: str
) -> None:
    driver.ensure_running()
    wait_until(lambda: are_exact(settings, check), "all states are exact", timeout_s=300, poll_s=3)
    model = read_model(name, (system_folder("logs"),))
    right = states(settings, model, f"{name}.v1.changelog")
    alerts = record_count(settings, "popular-products")
    # It would take the processors from the jobs.
    driver.stop()

    rebuild(settings, driver, name)

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
