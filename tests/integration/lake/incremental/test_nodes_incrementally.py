"""Incremental checks of lake and nodes raise no false alarm under load, and find faults in one node's changed records."""

from pyspark.sql import SparkSession

from include.quality.check import CheckResult, Mode, StoreName
from include.settings import Settings
from spark_jobs.lake.live_lake import promote
from spark_jobs.quality.expectations.complete_to_cut import COMPLETE
from spark_jobs.quality.expectations.key_count import KEY_COUNT
from spark_jobs.quality.expectations.no_missing_key import NO_MISSING_KEY
from tests.integration.lake.test_quality_under_load import NodeStore, load, nodes, run
from tests.support.lake.checked_ledger import failed, named
from tests.support.stream_events import BALANCE, random_event
from tests.support.stream_process import EventSource

__all__ = ["nodes"]
RUNS = 3


def incremental(spark: SparkSession, settings: Settings, *stores: StoreName, number: int) -> CheckResult:
    result = run(spark, settings, *stores, number=number, mode=Mode.INCREMENTAL)
    assert result.because == ""
    return result


def compared_on_nodes(result: CheckResult) -> int:
    """Return the number of records of nodes that a check has compared."""
    of_nodes = (e for e in result.expectations if (e.store, e.expectation) == (StoreName.NODES, COMPLETE))
    return sum(found.checked for found in of_nodes)


def test_no_false_alarm_under_load(nodes: Settings, lake_spark: SparkSession) -> None:
    both = (StoreName.LAKE, StoreName.NODES)
    promote(lake_spark, nodes, BALANCE)
    first = run(lake_spark, nodes, *both)
    assert first.passed, first.verdict
    compared = []
    with load(nodes):
        for number in range(RUNS):
            result = incremental(lake_spark, nodes, *both, number=number)
            assert result.passed, result.verdict + str(result.failing_keys[:3])
            compared.append(compared_on_nodes(result))
    # The load may have begun after the first cut.
    assert compared[-1] > 0


def test_faults_in_one_node_are_found(nodes: Settings, lake_spark: SparkSession) -> None:
    before = run(lake_spark, nodes, StoreName.NODES)
    assert before.passed, before.verdict
    store = NodeStore(nodes)
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

        result = incremental(lake_spark, short_wait, StoreName.NODES, number=RUNS)
    finally:
        store.restore()

    assert named(result) == {stale.decode(): (COMPLETE,), lost.decode(): (NO_MISSING_KEY,)}
    assert failed(result) == {COMPLETE: 1, NO_MISSING_KEY: 1, KEY_COUNT: 1}
    mended = incremental(lake_spark, nodes, StoreName.NODES, number=RUNS + 1)
    assert mended.passed, mended.verdict
