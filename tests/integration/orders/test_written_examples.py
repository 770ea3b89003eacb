"""The examples of the pages with the mark `run on orders`, as a reader runs them, while couriers drive.

Sorted behind the tests that count orders.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from threading import Event

import pytest

from demo.orders.couriers import MS_PER_S, Shift, Update, in_real_time, load
from include.settings import Settings
from tests.support.documentation.page_blocks import Block, blocks_run
from tests.support.documentation.page_follower import PageFollower
from tests.support.unsupervised_driver import SharedDriver

pytestmark = pytest.mark.timeout(600)
# The order on the pages.
SHOWN_ORDER = "1795657678-000760"
# Ten orders a minute end while a stream is read.
EARLIER, LATER, ACTIVE = timedelta(minutes=30), timedelta(minutes=20), 300
LATEST_PLACED = timedelta(minutes=1)


@pytest.fixture(scope="module")
def shift(settings: Settings, driver: SharedDriver) -> Iterator[Shift]:
    """Couriers who have driven for half an hour, and drive until the last test."""
    began = datetime.now(UTC) - EARLIER
    whole = Shift.lasting(began, EARLIER + LATER, ACTIVE)
    shift = Shift(began, whole.orders, ACTIVE, update_every_s=60.0)
    updates = shift.updates()
    now_ms = round(time.time() * MS_PER_S)
    load(settings, takewhile(lambda update: update.written_ms < now_ms, updates))
    driver.ensure_running()
    is_over = Event()

    def driven() -> Iterator[Update]:
        for update in in_real_time(updates, now_ms + round(LATER.total_seconds() * MS_PER_S)):
            if is_over.is_set():
                return
            yield update

    with ThreadPoolExecutor(1, "couriers") as executor:
        driving = executor.submit(load, settings, driven())
        try:
            yield shift
        finally:
            is_over.set()
        driving.result()


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory, settings: Settings, shift: Shift) -> PageFollower:
    """Return a reader who looks up an order that has just been placed."""
    number = round((EARLIER - LATEST_PLACED).total_seconds() * MS_PER_S / shift.interval_ms)
    order = f"{shift.began_ms // MS_PER_S}-{number:06d}"
    return PageFollower(tmp_path_factory.mktemp("checkout"), settings, {SHOWN_ORDER: order})


@pytest.mark.parametrize("block", blocks_run("orders"), ids=lambda block: block.place)
def test_an_example_works_as_it_is_written(follower: PageFollower, block: Block) -> None:
    follower.follow(block)
