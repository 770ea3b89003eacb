"""On a system under load the check raises no false alarm, and finds what is wrong in a single node's store."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.settings import Settings
from query_api.store.lmdb import layout
from spark_jobs.lake.live_lake import promote
from spark_jobs.quality.expectations.complete_to_cut import COMPLETE
from spark_jobs.quality.expectations.no_missing_key import NO_MISSING_KEY
from spark_jobs.quality.expectations.no_truncated_partition import WHOLE_PARTITIONS
from spark_jobs.quality.run import run_check
from tests.support.checked_ledger import failed
from tests.support.stream_events import BALANCE, Ledger, random_event
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

RUNS = int(os.environ.get("FOLDLAKE_TEST_QUALITY_RUNS", "4"))
EVENTS_PER_BURST, PAUSE_S = 60, 0.2
PARTITION = 1


@pytest.fixture(scope="module")
def nodes(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Kafka, the registry and both query nodes, with a stream driver that folds, and some events."""
    session = request.session
    with temporary_stack(
        ("kafka", "registry", "query_nodes"),
        keep_home=lambda: session.testsfailed > 0,
        stream_real_time_interval_s=10,
        stream_spare_queries=0,
        quality_wait_s=30.0,
    ) as settings:
        make_topics(settings, BALANCE.source_topic)
        with stream_driver(settings):
            ledger = Ledger()
            EventSource(settings, BALANCE.source_topic).append(ledger.random_events(3_000))
            wait_until(lambda: ledger.is_folded(settings), "the events are folded")
            yield settings


@contextmanager
def load(settings: Settings) -> Iterator[None]:
    """Append some hundred events a second, of old customers and new ones."""
    stopping = threading.Event()
    source = EventSource(settings, BALANCE.source_topic)

    def append() -> None:
        customers = 500
        while not stopping.wait(PAUSE_S):
            customers += 5
            source.append([random_event(customers) for _ in range(EVENTS_PER_BURST)])

    thread = threading.Thread(target=append)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def run(
    spark: SparkSession, settings: Settings, *stores: StoreName, number: int = 0, mode: Mode = Mode.FULL
) -> CheckResult:
    return run_check(spark, settings, CheckRequest("balance", stores, mode, f"run-{number}"))


def test_no_false_alarm_under_load(nodes: Settings, lake_spark: SparkSession) -> None:
    promote(lake_spark, nodes, BALANCE)
    keys = []
    with load(nodes):
        for number in range(RUNS):
            mode = Mode.SAMPLE if number % 3 == 2 else Mode.FULL
            stores = (StoreName.LAKE, StoreName.NODES, StoreName.CHANGELOG)
            result = run(lake_spark, nodes, *stores, number=number, mode=mode)
            assert result.passed, result.verdict + str(result.failing_keys[:3])
            keys.append(result.keys)
    assert keys[-1] != keys[0]


@pytest.fixture
def store(nodes: Settings, lake_spark: SparkSession) -> Iterator["NodeStore"]:
    """The store of the first node, which holds all partitions; every node is right before."""
    before = run(lake_spark, nodes, StoreName.NODES)
    assert before.passed, before.verdict
    opened = NodeStore(nodes.changed(quality_wait_s=1.0))
    yield opened
    opened.restore()


class NodeStore:
    """The store of a node, written to past its materializer."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        path = settings.home / "nodes" / "node-1" / "balance.v1"
        self._environment = layout.open_environment(
            path,
            map_size_bytes=settings.node.store_map_size_mb * 2**20,
            partitions=settings.topics.partitions,
            readonly=False,
        )
        self._records = self._environment.open_db(layout.partition_database(PARTITION))
        with self._environment.begin(db=self._records) as transaction:
            self.right = dict(transaction.cursor())

    def held(self, key: bytes) -> bytes:
        """Return what is stored under a key."""
        with self._environment.begin(db=self._records) as transaction:
            return bytes(transaction.get(key) or b"")

    def put(self, key: bytes, stored: bytes) -> None:
        """Store any bytes under a key."""
        with self._environment.begin(write=True, db=self._records) as transaction:
            transaction.put(key, stored)

    def delete(self, keys: list[bytes]) -> None:
        """Remove keys."""
        with self._environment.begin(write=True, db=self._records) as transaction:
            for key in keys:
                transaction.delete(key)

    def restore(self) -> None:
        """Put back what was there."""
        with self._environment.begin(write=True, db=self._records) as transaction:
            for key in [k for k, _ in transaction.cursor()]:
                transaction.delete(key)
            for key, stored in self.right.items():
                transaction.put(key, stored)
        self._environment.close()


def place_of(result: CheckResult) -> str:
    (place,) = {k.place for k in result.failing_keys}
    assert place.startswith(f"node-1 partition {PARTITION} (")
    return place


def test_a_stale_value_in_one_node_is_named(
    nodes: Settings, lake_spark: SparkSession, store: NodeStore
) -> None:
    key = min(store.right)
    source = EventSource(nodes, BALANCE.source_topic)
    event = random_event()
    source.append([type(event)(customerId=key.decode(), amount=event.amount)])
    newer = run(lake_spark, nodes, StoreName.NODES)
    stale = store.right[key]
    store.right[key] = store.held(key)
    assert newer.passed, newer.verdict
    store.put(key, stale)

    result = run(lake_spark, store.settings, StoreName.NODES)

    assert failed(result) == {COMPLETE: 1}
    (failing,) = result.failing_keys
    assert (failing.key, failing.expectations) == (key.decode(), (COMPLETE,))
    assert place_of(result)


def test_a_truncated_partition_of_one_node_is_named(lake_spark: SparkSession, store: NodeStore) -> None:
    keys = sorted(store.right)
    lost = keys[len(keys) // 2 :]
    store.delete(lost)

    result = run(lake_spark, store.settings, StoreName.NODES)

    assert failed(result) == {NO_MISSING_KEY: len(lost), WHOLE_PARTITIONS: 1}
    assert {k.key.encode() for k in result.failing_keys} == set(lost)
    place = place_of(result)
    (truncated,) = (e for e in result.expectations if e.expectation == WHOLE_PARTITIONS)
    assert truncated.sample == ({"place": place, "partition": str(PARTITION)},)
