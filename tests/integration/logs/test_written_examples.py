"""The examples of the pages with the mark `run on logs`, as a reader runs them.

Sorted behind the tests of the branches.
"""

import json
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from demo.log_tables import messages, record_count
from demo.logs.catalogue import append_entries, first_entries
from demo.logs.loading import TOPIC, load_lines
from include.settings import Settings
from include.status.measurement import read_stream_status
from stack.launchers.direct_submit import launch
from tests.integration.logs.conftest import FIRST
from tests.support.documentation.page_blocks import Block, blocks_run
from tests.support.documentation.page_follower import PageFollower
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
TABLE = "browser-events"
# The bot on the page, and the time range of its windows there.
BROWSER = "ad0891632773690e"
SHOWN_SINCE, SHOWN_UNTIL = "2026-03-02T08:24:00Z", "2026-03-02T08:24:10Z"


def last_action(settings: Settings) -> datetime:
    """The time of the bot's last action on the topic; its windows have not expired."""
    times = []
    for message in messages(settings, TOPIC):
        # Some lines are broken.
        with suppress(ValueError):
            fields = json.loads(message.value() or b"")
            if fields.get("browser_hash") == BROWSER and "action" in fields:
                times.append(datetime.fromisoformat(fields["@timestamp"]))
    return max(times)


@pytest.fixture(scope="module")
def loaded(nodes: Settings, driver: SharedDriver) -> Settings:
    """The settings, once all lines are folded, and browser events are in the lake."""
    append_entries(nodes, first_entries())
    load_lines(nodes, FIRST)
    driver.ensure_running()
    wait_until(lambda: record_count(nodes, TABLE) > 0, "browser events", timeout_s=300)
    wait_until(lambda: read_stream_status(nodes).events_behind == 0, "all is folded", 300, 2)
    # The job would wait for the driver's queries.
    driver.stop()
    job = launch(nodes, "event_tables", ["--event-table", TABLE], nodes.home / "logs" / "event-tables.log")
    assert job.wait(300) == 0
    return nodes


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory, loaded: Settings) -> PageFollower:
    """Return a reader who looks up the newest windows of the bot."""
    since = last_action(loaded) - timedelta(seconds=10)
    until = since + timedelta(seconds=15)
    known = {
        SHOWN_SINCE: f"{since:%Y-%m-%dT%H:%M:%SZ}",
        SHOWN_UNTIL: f"{until:%Y-%m-%dT%H:%M:%SZ}",
    }
    return PageFollower(tmp_path_factory.mktemp("checkout"), loaded, known)


@pytest.mark.parametrize("block", blocks_run("logs"), ids=lambda block: block.place)
def test_an_example_works_as_it_is_written(follower: PageFollower, block: Block) -> None:
    follower.follow(block)
