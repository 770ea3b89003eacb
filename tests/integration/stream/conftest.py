"""A home for tests of stream drivers, and a driver whose query falls behind soon, with its checkpoints on a small disk."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from tests.support.balance_copy import with_balance_copy
from tests.support.faults.small_disk import SmallDisk, small_disk_if_permitted
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import sharing_servers
from tests.support.unsupervised_driver import SharedDriver

PACED = "paced"


@pytest.fixture(scope="package")
def stream_stack(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """A home on the shared Kafka and schema registry, for tests that run their own stream drivers, one at a time."""
    with sharing_servers(
        servers,
        keep_home,
        stream_real_time_interval_s=10,
        stream_catch_up_threshold_events=5_000,
        stream_catch_up_batch_events=4_000,
        stream_spare_queries=0,
    ) as home:
        make_topics(home, "balance")
        yield home


@pytest.fixture(scope="package")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    """The disk of the checkpoints, or a directory where mounting is not permitted."""
    with small_disk_if_permitted(tmp_path_factory.mktemp("stream") / "disk", size_mb=96) as mounted:
        yield mounted


@pytest.fixture(scope="package")
def paced(stream_stack: Settings, disk: SmallDisk, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a read model on topics of its own: no other test reads its many events."""
    make_topics(stream_stack, PACED)
    return with_balance_copy(
        stream_stack.changed(
            checkpoint_dir=str(disk.path / "checkpoints"),
            stream_real_time_interval_s=5,
            stream_catch_up_threshold_events=500,
            stream_catch_up_batch_events=1_000_000,
            stream_min_batch_time_s=3,
        ),
        PACED,
        tmp_path_factory.mktemp("read_models"),
    )


@pytest.fixture(scope="package")
def driver(paced: Settings) -> Iterator[SharedDriver]:
    """A driver, which is not running yet; tests that run another one have to stop it."""
    with SharedDriver(paced) as shared:
        yield shared


@pytest.fixture(scope="package")
def paced_source(paced: Settings) -> EventSource:
    """Appends to the topic of the read model."""
    return EventSource(paced, PACED)


@pytest.fixture(scope="package")
def paced_ledger() -> Ledger:
    """The balances of the read model."""
    return Ledger()
