"""The same stream job runs on a Spark standalone cluster with two workers; only a setting differs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource
from tests.support.unsupervised_driver import LOOPBACK, log_path, spark_cluster, stream_driver
from tests.support.waiting import wait_until


@pytest.fixture
def cluster(stream_stack: Settings, tmp_path: Path) -> Iterator[str]:
    """A master and two workers on loopback; yields the master's URL."""
    with spark_cluster(stream_stack, tmp_path) as url:
        yield url


@pytest.mark.endurance
def test_cluster_continues_the_same_checkpoint_exactly(stream_stack: Settings, cluster: str) -> None:
    ledger = Ledger(stream_stack)
    source = EventSource(stream_stack, BALANCE.source_topic)
    source.append(ledger.random_events(7_000))
    on_cluster = stream_stack.changed(stream_master=cluster, stream_driver_host=LOOPBACK)

    with stream_driver(on_cluster):
        wait_until(lambda: ledger.is_folded(on_cluster), "caught up on the cluster")
        source.append(ledger.random_events(1_000))
        wait_until(lambda: ledger.is_folded(on_cluster), "folded in real time on the cluster")
        ledger.assert_exact(on_cluster)

    assert f"on {cluster}" in log_path(on_cluster).read_text()
