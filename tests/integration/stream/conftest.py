"""A home for tests that run their own stream drivers."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from tests.support.stream_process import make_topics
from tests.support.temporary_stack import sharing_servers


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
