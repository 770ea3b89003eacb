"""Orders leave the read model when they end: its changelog, the nodes' stores, the lake and Spark's state, however the driver is killed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demo.log_tables import messages
from demo.orders.couriers import MS_PER_MINUTE, TOPIC, Shift, Update, load
from demo.orders.lookups import list_active
from demo.orders.oracle import Location, Oracle
from demo.systems.orders.order_location import ENDS
from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.kafka.topics import dead_letter_topic
from include.lake.tables import table_path
from include.nodes.local_nodes import NodeAddress, local_nodes
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.replay.key_expectations import NO_ENDED_KEY
from include.settings import Settings
from include.stream.query_reports import BatchProgress, read_queries
from spark_jobs.compaction import compact
from stack.declaration_testing.session import lake_session
from tests.support.http.local_http import HTTP
from tests.support.lake.both_engines import checked_by_both
from tests.support.lake.checked_ledger import named
from tests.support.stream_process import states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.endurance

CHANGELOG = "order-location.v1.changelog"
FIELDS = ("courier", "latitude", "longitude", "status", "placed_on", "located_on")
TIMEOUT_S = 300.0
# Thirteen hours, twice as long as Spark keeps the state of an order; the last hour comes while the driver reads in real time.
SHIFT = Shift(datetime.now(UTC) - timedelta(hours=13), orders=1_040, active=40, update_every_s=300)
END_MS = SHIFT.began_ms + round(SHIFT.orders * SHIFT.interval_ms)
LAST_HOUR_MS = END_MS - 60 * MS_PER_MINUTE
KEPT_HOURS = 4 + 1 + 1
# Orders of the first hours whose ends are lost.
WITHOUT_END = range(20, 23)


def written() -> list[Update]:
    """The updates until the shift's last order is placed: others are on their way then."""
    return [
        update
        for update in SHIFT.updates()
        if update.written_ms < END_MS and not (update.number in WITHOUT_END and update.status in ENDS)
    ]


def location(state: dict[str, object]) -> Location:
    return tuple(state[name] for name in FIELDS)  # type: ignore[return-value]  # the fields of the read model


def stored(settings: Settings, model: ReadModel) -> dict[str, Location]:
    return {key: location(record.state) for key, record in states(settings, model, CHANGELOG).items()}


@pytest.fixture(scope="module")
def model(settings: Settings) -> ReadModel:
    return read_model("order-location", settings.declaration_folders)


@pytest.fixture(scope="module")
def lake_spark(settings: Settings) -> Iterator[SparkSession]:
    with lake_session(settings, settings.home / "spark", cores=2) as spark:
        yield spark


@pytest.fixture(scope="module")
def oracle(settings: Settings, driver: SharedDriver, model: ReadModel, lake_spark: SparkSession) -> Oracle:
    """The orders after a shift during which the driver was killed twice."""
    updates = written()
    before = [update for update in updates if update.written_ms < LAST_HOUR_MS]
    half = len(before) // 2
    load(settings, before[:half])
    driver.ensure_running()
    wait_until(lambda: any(messages(settings, CHANGELOG)), "the first records", timeout_s=TIMEOUT_S)
    driver.kill()
    compact(lake_spark, settings, model)
    load(settings, before[half:])
    driver.ensure_running()
    halfway = Oracle(settings)
    wait_until(lambda: stored(settings, model) == halfway.active(), "all active orders", timeout_s=TIMEOUT_S)
    load(settings, [update for update in updates if update.written_ms >= LAST_HOUR_MS])
    driver.kill()
    driver.ensure_running()
    return Oracle(settings)


@pytest.mark.timeout(900)
def test_the_changelog_has_exactly_the_active_orders(
    settings: Settings, model: ReadModel, oracle: Oracle
) -> None:
    expected = oracle.active()

    wait_until(lambda: stored(settings, model) == expected, "all active orders", timeout_s=TIMEOUT_S)

    counts = oracle.counts()
    assert counts.orders == len({update.order for update in written()})
    lost = {update.order for update in written() if update.number in WITHOUT_END}
    assert 0 < len(expected) == counts.orders - counts.ended - len(lost) < SHIFT.active * 3
    removed = [message for message in messages(settings, CHANGELOG) if message.value() is None]
    assert {message.key() for message in removed}.isdisjoint(key.encode() for key in expected)
    assert len({message.key() for message in removed}) == counts.ended + len(lost)
    assert {order.encode() for order in lost} <= {message.key() for message in removed}


def test_updates_after_the_lifetime_are_counted_as_dead_letters(settings: Settings, oracle: Oracle) -> None:
    late = oracle.counts().late

    def reasons() -> list[object]:
        topic = dead_letter_topic(TOPIC)
        return [dict(message.headers() or [])["reason"] for message in messages(settings, topic)]

    wait_until(lambda: len(reasons()) >= late, "all dead letters", timeout_s=TIMEOUT_S)
    assert reasons() == [b"lifetime_ended"] * late
    assert late > 0


def test_no_node_has_an_order_that_has_ended(settings: Settings, oracle: Oracle) -> None:
    expected = oracle.active()

    def is_listed(node: NodeAddress) -> bool:
        return list_active(node, page=7) == expected

    for node, port in zip(local_nodes(settings), settings.query_ports, strict=True):
        wait_until(partial(is_listed, node), "a node's orders", timeout_s=TIMEOUT_S)
        ended = next(iter({update.order for update in written()} - set(expected)))
        answer = HTTP.get(f"http://127.0.0.1:{port}/api/orders.getLocation", params={"orderNumber": ended})
        assert answer.status_code == httpx.codes.NOT_FOUND


def test_an_update_after_the_delivery_does_not_bring_an_order_back(
    settings: Settings, driver: SharedDriver, model: ReadModel, oracle: Oracle
) -> None:
    driver.ensure_running()
    updates = {update.order: update for update in written() if update.status == "ON_THE_WAY"}
    expected = oracle.active()
    # Still in Spark's state, and within the lifetime.
    ended = [
        one
        for one in updates.values()
        if one.order not in expected and one.placed_ms > LAST_HOUR_MS - 30 * MS_PER_MINUTE
    ]
    active = next(one for one in reversed(updates.values()) if one.order in expected)
    # The last update shows that the driver has read the others.
    now_ms = max(update.written_ms for update in written()) + 1
    newest = active._replace(written_ms=now_ms, occurred_ms=now_ms, latitude=52.5, longitude=13.4)
    load(settings, [*(one._replace(written_ms=now_ms, occurred_ms=now_ms) for one in ended), newest])

    after = Oracle(settings)
    wait_until(lambda: stored(settings, model) == after.active(), "the newest update", timeout_s=TIMEOUT_S)
    assert ended
    assert stored(settings, model).keys() == expected.keys()
    assert stored(settings, model)[newest.order][1:3] == (52.5, 13.4)


def test_spark_forgets_the_state_of_old_orders(
    settings: Settings, driver: SharedDriver, oracle: Oracle
) -> None:
    driver.ensure_running()
    kept = [u.order for u in written() if u.placed_ms > END_MS - (KEPT_HOURS * 60 + 20) * MS_PER_MINUTE]

    def reported() -> list[BatchProgress]:
        queries = read_queries(settings.kafka_connection)
        return [one.last_batch for one in queries if one.query == "order-location/v1"]

    def is_evicted() -> bool:
        return all(0 < batch.state_rows <= len(set(kept)) for batch in reported())

    assert oracle.counts().orders > 1.5 * len(set(kept))
    wait_until(is_evicted, "the state of old orders is removed", timeout_s=TIMEOUT_S)
    (batch,) = reported()
    assert batch.dropped_events == 0


def test_the_lake_has_the_active_orders_and_the_history_of_the_others(
    settings: Settings, model: ReadModel, lake_spark: SparkSession, oracle: Oracle
) -> None:
    wait_until(
        lambda: stored(settings, model) == Oracle(settings).active(), "all updates", timeout_s=TIMEOUT_S
    )
    compact(lake_spark, settings, model)
    table = DeltaTable(table_path(settings.lake_root, model.name))

    rows = table.to_pyarrow_table().to_pylist()

    assert {row["key"]: location(row) for row in rows} == Oracle(settings).active()
    earlier: set[str] = set()
    for commit in table.history():
        table.load_as_version(commit["version"])
        earlier |= set(table.to_pyarrow_table()["key"].to_pylist())
    assert earlier - oracle.active().keys()


def test_the_check_finds_an_order_that_should_have_left(
    settings: Settings, model: ReadModel, driver: SharedDriver, lake_spark: SparkSession, oracle: Oracle
) -> None:
    driver.ensure_running()
    stores = (StoreName.LAKE, StoreName.NODES, StoreName.CHANGELOG)

    def checked(run_id: str) -> CheckResult:
        return checked_by_both(lake_spark, settings, CheckRequest(model.name, stores, Mode.FULL, run_id))

    sound = checked("sound")
    assert sound.passed, sound.verdict + str(sound.failing_keys)
    # Planted: the record that an order had before it ended, and one with all of its events.
    active = oracle.active()
    placed_late = [u for u in written() if u.order not in active and u.placed_ms > LAST_HOUR_MS]
    orders = list(dict.fromkeys(update.order for update in placed_late))
    planted = []
    for order in orders[:2]:
        events = [message for message in messages(settings, TOPIC) if message.key() == order.encode()]
        counted = events if order == orders[0] else events[:-1]
        position = {"source_partition": counted[-1].partition(), "source_offset": counted[-1].offset()}
        planted.append({"key": order, "event_count": len(counted), **position})
    table = lake_spark.read.format("delta").load(table_path(settings.lake_root, model.name))
    rows = lake_spark.createDataFrame(planted, table.schema)
    rows.write.format("delta").mode("append").save(table_path(settings.lake_root, model.name))

    faulty = checked("faulty")

    assert not faulty.passed
    assert set(named(faulty)) == set(orders[:2])
    assert NO_ENDED_KEY in named(faulty)[orders[0]]
