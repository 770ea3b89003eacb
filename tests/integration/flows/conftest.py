"""A home with a declaration of every kind of flow, its driver, and the deposits that all of them read."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from demo.log_tables import record_count
from include.settings import Settings
from tests.integration.emissions.receipts import EVENTS_PER_ROUND, SOURCE, Deposits
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

SUPPORT = Path(__file__).parents[2] / "support"
DECLARED = ("read_models_with_kind", "read_models_with_rekey", "read_models_with_routes")
OUTPUTS = ("first-deposits", "daily-deposits.v1.changelog", "postings", "balance.v1.changelog")
# What runs in batches: a read model from the start, a route also after a restart.
INTERVAL_S = 4
BALANCE_IN_BATCHES = f"balance:{INTERVAL_S * 1000}"


@pytest.fixture(scope="package")
def settings(
    servers: Settings, keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    """Settings of a home with the declarations of several folders of tests/support."""
    folder = tmp_path_factory.mktemp("flows") / "declared"
    for name in DECLARED:
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SUPPORT / name, folder, dirs_exist_ok=True, ignore=leave_out)
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=1,
        stream_batch_mode=(BALANCE_IN_BATCHES,),
        **SHORT_COMMITS,
        quality_wait_s=20.0,
        read_models_dir=folder,
    ) as home:
        make_topics(home, SOURCE)
        yield home


@pytest.fixture(scope="package")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared


@pytest.fixture(scope="package")
def deposits(settings: Settings, driver: SharedDriver) -> Deposits:
    """The deposits so far: the driver was killed when every flow had written something, and runs again."""
    deposits = Deposits(EventSource(settings, SOURCE))
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    for topic in OUTPUTS:
        wait_until(partial(record_count, settings, topic), f"{topic} is written", timeout_s=180)
    # In real time, or while it catches up.
    deposits.append(EVENTS_PER_ROUND)
    driver.kill()
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    return deposits


@pytest.fixture(scope="package")
def restarted(driver: SharedDriver, deposits: Deposits) -> Deposits:
    """The same deposits, after an orderly restart of the driver with a route in batches."""
    driver.stop()
    driver.ensure_running(stream_batch_mode=("postings", BALANCE_IN_BATCHES))
    return deposits
