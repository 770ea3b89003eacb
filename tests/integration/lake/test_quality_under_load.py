"""Full and incremental checks raise no false alarm under load, and find faults in a single node's store."""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from include.nodes.record_client import NodeClient, PartitionReplica
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.replay.key_expectations import COMPLETE, KEY_COUNT, NO_MISSING_KEY, WHOLE_PARTITIONS
from include.settings import Settings
from spark_jobs.lake.live_lake import promote
from spark_jobs.quality.run import run_check
from stack.lifecycle import start
from tests.support.lake.checked_ledger import failed, named
from tests.support.node_store import NodeStore
from tests.support.repetition import repeated
from tests.support.stream_events import BALANCE, Ledger, random_event
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import sharing_servers
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.endurance

RUNS = int(os.environ.get("FOLDLAKE_TEST_QUALITY_RUNS", "2"))
INCREMENTS = 2
EVENTS_PER_BURST, PAUSE_S = 10, 0.2
PARTITION = 1


@pytest.fixture(scope="module")
def nodes(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Both query nodes and a stream driver that has folded some events, in a separate home."""
    with sharing_servers(
        servers,
        keep_home,
        stream_real_time_interval_s=10,
        stream_spare_queries=0,
        quality_wait_s=30.0,
    ) as home:
        make_topics(home, BALANCE.source_topic)
        start(home, ("query_nodes",))
        with stream_driver(home):
            ledger = Ledger()
            EventSource(home, BALANCE.source_topic).append(ledger.random_events(1_000))
            wait_until(lambda: ledger.is_folded(home), "the events are folded")
            yield home


@contextmanager
def load(settings: Settings) -> Iterator[None]:
    """Append about fifty events per second, of existing and new customers."""
    source = EventSource(settings, BALANCE.source_topic)
    customers = itertools.count(505, step=5)

    def append() -> None:
        known = next(customers)
        source.append([random_event(known) for _ in range(EVENTS_PER_BURST)])

    with repeated(append, PAUSE_S):
        yield


def run(
    spark: SparkSession, settings: Settings, *stores: StoreName, number: int = 0, mode: Mode = Mode.FULL
) -> CheckResult:
    return run_check(spark, settings, CheckRequest("balance", stores, mode, f"run-{number}"))


def test_no_false_alarm_under_load(nodes: Settings, lake_spark: SparkSession) -> None:
    promote(lake_spark, nodes, BALANCE)
    keys = []
    with load(nodes):
        for number in range(RUNS):
            mode = Mode.SAMPLE if number % 2 else Mode.FULL
            stores = (StoreName.LAKE, StoreName.NODES, StoreName.CHANGELOG)
            result = run(lake_spark, nodes, *stores, number=number, mode=mode)
            assert result.passed, result.verdict + str(result.failing_keys[:3])
            keys.append(result.records)
    assert keys[-1] != keys[0]


def test_a_wrong_answer_of_a_right_record_is_found(
    nodes: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = NodeClient.record
    wrong: set[tuple[str, str]] = set()

    def changed(client: NodeClient, replica: PartitionReplica, key: str, deadline_s: float) -> str | None:
        found = record(client, replica, key, deadline_s)
        wrong.add((replica.name, key))
        return found and re.sub(r'"amount":(-?)', r'"amount":\g<1>9', found)

    monkeypatch.setattr(NodeClient, "record", changed)

    result = run(lake_spark, nodes, StoreName.NODES)

    assert len(wrong) > len({place for place, _ in wrong}) > 1, "several keys of each replica are looked up"
    assert {(failing.place, failing.key) for failing in result.failing_keys} == wrong


def incremental(spark: SparkSession, settings: Settings, *stores: StoreName, number: int) -> CheckResult:
    result = run(spark, settings, *stores, number=number, mode=Mode.INCREMENTAL)
    assert result.full_check_reason == ""
    return result


def compared_on_nodes(result: CheckResult) -> int:
    """Return the number of records of nodes that a check has compared."""
    of_nodes = (e for e in result.expectations if (e.store, e.expectation) == (StoreName.NODES, COMPLETE))
    return sum(found.checked for found in of_nodes)


def test_increments_raise_no_false_alarm_under_load(nodes: Settings, lake_spark: SparkSession) -> None:
    both = (StoreName.LAKE, StoreName.NODES)
    promote(lake_spark, nodes, BALANCE)
    first = run(lake_spark, nodes, *both)
    assert first.passed, first.verdict
    compared = []
    with load(nodes):
        for number in range(INCREMENTS):
            result = incremental(lake_spark, nodes, *both, number=number)
            assert result.passed, result.verdict + str(result.failing_keys[:3])
            compared.append(compared_on_nodes(result))
    # The load may have begun after the first cut.
    assert compared[-1] > 0


def test_increments_find_faults_in_changed_records_of_one_node(
    nodes: Settings, lake_spark: SparkSession
) -> None:
    before = run(lake_spark, nodes, StoreName.NODES)
    assert before.passed, before.verdict
    store = NodeStore(nodes, BALANCE.name, PARTITION)
    stale, lost, unchanged = sorted(store.right)[:3]
    try:
        event = random_event()
        newer = [type(event)(customerId=key.decode(), amount=event.amount) for key in (stale, lost)]
        EventSource(nodes, BALANCE.source_topic).append(newer)
        # A passed check would go on from these events.
        right = run(lake_spark, nodes, StoreName.NODES, mode=Mode.SAMPLE)
        assert right.passed, right.verdict
        old, store.right[stale] = store.right[stale], store.stored(stale)
        store.right[lost] = store.stored(lost)
        store.put(stale, old)
        store.delete([lost, unchanged])
        short_wait = nodes.changed(quality_wait_s=1.0)

        result = incremental(lake_spark, short_wait, StoreName.NODES, number=INCREMENTS)
    finally:
        store.restore()

    assert named(result) == {stale.decode(): (COMPLETE,), lost.decode(): (NO_MISSING_KEY,)}
    assert failed(result) == {COMPLETE: 1, NO_MISSING_KEY: 1, KEY_COUNT: 1}
    mended = incremental(lake_spark, nodes, StoreName.NODES, number=INCREMENTS + 1)
    assert mended.passed, mended.verdict


@dataclass(frozen=True)
class FaultyNode:
    """The faults planted in the first node's store, and the result of the check."""

    stale: str
    lost: frozenset[str]
    result: CheckResult

    @property
    def place(self) -> str:
        """The only place with failing keys."""
        (place,) = {failing.place for failing in self.result.failing_keys}
        return place


@pytest.fixture(scope="module")
def faulty_node(nodes: Settings, lake_spark: SparkSession) -> Iterator[FaultyNode]:
    """Check once after planting two faults: one key's newest event is undone, and half of its partition is deleted."""
    store = NodeStore(nodes, BALANCE.name, PARTITION)
    try:
        keys = sorted(store.right)
        stale, lost = keys[0], keys[len(keys) // 2 :]
        event = random_event()
        newer = type(event)(customerId=stale.decode(), amount=event.amount)
        EventSource(nodes, BALANCE.source_topic).append([newer])
        before = run(lake_spark, nodes, StoreName.NODES)
        assert before.passed, before.verdict
        old, store.right[stale] = store.right[stale], store.stored(stale)
        assert old != store.right[stale]
        store.put(stale, old)
        store.delete(lost)
        short_wait = nodes.changed(quality_wait_s=1.0)
        result = run(lake_spark, short_wait, StoreName.NODES)
        yield FaultyNode(stale.decode(), frozenset(key.decode() for key in lost), result)
    finally:
        store.restore()


def test_only_the_planted_faults_of_one_node_are_found(faulty_node: FaultyNode) -> None:
    lost = len(faulty_node.lost)

    assert failed(faulty_node.result) == {COMPLETE: 1, NO_MISSING_KEY: lost, WHOLE_PARTITIONS: 1}
    assert faulty_node.place.startswith(f"node-1 partition {PARTITION} (")


def test_a_stale_value_in_one_node_is_named(faulty_node: FaultyNode) -> None:
    (failing,) = (k for k in faulty_node.result.failing_keys if COMPLETE in k.expectations)

    assert (failing.key, failing.expectations) == (faulty_node.stale, (COMPLETE,))


def test_a_truncated_partition_of_one_node_is_named(faulty_node: FaultyNode) -> None:
    found = {k.key for k in faulty_node.result.failing_keys if k.expectations == (NO_MISSING_KEY,)}
    (truncated,) = (e for e in faulty_node.result.expectations if e.expectation == WHOLE_PARTITIONS)

    assert found == faulty_node.lost
    assert truncated.sample == ({"place": faulty_node.place, "partition": str(PARTITION)},)
