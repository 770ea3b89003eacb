"""A home with the declarations of the system `logs`, on the shared servers: its lines, its driver, its nodes."""

from collections.abc import Callable, Iterator

import pytest

from demo.log_tables import record_count
from demo.logs.catalogue import append_entries, first_entries, name_of
from demo.logs.comparison import Check
from demo.logs.lines import PRODUCTS, log_lines, product_id
from demo.logs.loading import load_lines
from include.settings import Settings
from stack.lifecycle import start
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

FIRST, ALL = 6_000, 22_000
# Has more than 1,000 views when the catalogue gets its first entry of it.
NAMED_LATE = 2
NAMES = {product_id(number): name_of(number) for number in range(1, PRODUCTS + 1)}


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home with the declarations of demo/systems/logs."""
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=2,
        partitions=2,
        stream_periodic_interval_s=2.0,
        stream_expiry_s=120,
        node_access_log=True,
        quality_wait_s=20.0,
        lake_niceness=0,
        **SHORT_COMMITS,
        systems=("logs",),
    ) as home:
        yield home


@pytest.fixture(scope="package")
def nodes(settings: Settings) -> Settings:
    """Two query nodes, which follow what the driver folds."""
    start(settings, ("query_nodes",))
    return settings


@pytest.fixture(scope="package")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared


@pytest.fixture(scope="package")
def check(nodes: Settings, driver: SharedDriver) -> Check:
    """The comparison with the oracle, after a load in which the driver was killed; the branches may be behind."""
    entries = first_entries()
    append_entries(nodes, [one for number, one in enumerate(entries, start=1) if number != NAMED_LATE])
    driver.ensure_running()
    load_lines(nodes, FIRST)
    wait_until(lambda: record_count(nodes, "captcha-requests") > 0, "captcha requests", timeout_s=300)
    driver.kill()
    load_lines(nodes, ALL)
    driver.ensure_running()
    check = Check(nodes, log_lines(ALL), NAMES)
    views = check.expected_rows("views") + PRODUCTS - 1
    wait_until(lambda: record_count(nodes, "product-views") >= views, "views", timeout_s=300)
    append_entries(nodes, [entries[NAMED_LATE - 1]])
    return check
