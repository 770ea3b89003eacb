"""A home with the declarations of the system `orders`, two query nodes, a Redis and a stream driver, on the shared servers.

The orders are placed in Redis, where removals and the check of the nodes have most to do; the demo replicates them.
"""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from stack.lifecycle import start
from tests.support.http.otlp_receiver import OtlpReceiver, otlp_receiver
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver


@pytest.fixture(scope="package")
def collector() -> Iterator[OtlpReceiver]:
    """A collector of traces."""
    with otlp_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool], collector: OtlpReceiver) -> Iterator[Settings]:
    """Settings of a home with the declarations of demo/systems/orders, whose nodes run."""
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=1,
        lake_shuffle_partitions=2,
        **SHORT_COMMITS,
        systems=("orders",),
        placements=("order-location=redis",),
        traces_url=collector.url,
        # Only requests whose clients want it are traced.
        traces_sample_ratio=0.0,
    ) as home:
        start(home, ("redis", "query_nodes"))
        yield home


@pytest.fixture(scope="package")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared
