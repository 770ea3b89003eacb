"""The quality check finds each planted fault and nothing else: a wrong number, and a window that should have gone."""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import fastavro
import pytest
from confluent_kafka import Message, Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demo.logs.comparison import Check, compare
from demo.logs.report import TABLE, browser_events
from include.declarations.load import load_catalog, read_model
from include.kafka.wire_format import HEADER_BYTES
from include.lake.tables import table_path
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.replay.key_expectations import NO_ENDED_KEY, folds_to
from include.settings import Settings
from include.settings.systems import system_folder
from include.status.measurement import read_stream_status
from spark_jobs.compaction import compact
from spark_jobs.event_tables import append_new
from spark_jobs.quality_check import check as check_stores
from stack.declaration_testing.session import lake_session
from tests.support.lake.checked_ledger import named
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(900)]


WINDOWS = "browser-windows"


@dataclass(frozen=True)
class Fault:
    """A fault that is planted in one key's newest record: a field of the state that is one too high."""

    read_model: str
    field: str


# One read model of two event types, and one whose items expire.
FAULTS = (
    Fault("product-views", "views"),
    Fault(WINDOWS, "actions"),
)


@pytest.fixture(scope="module")
def lake_spark(settings: Settings) -> Iterator[SparkSession]:
    with lake_session(settings, settings.home / "spark", cores=2) as spark:
        yield spark


@pytest.fixture(scope="module")
def still(settings: Settings, driver: SharedDriver, check: Check) -> Settings:
    """The settings, once all events are folded and the driver has stopped: it would remove an expired window again."""
    assert check.expected_rows("views")
    driver.ensure_running()
    wait_until(
        lambda: read_stream_status(settings).events_behind == 0, "all is folded", timeout_s=300, poll_s=2
    )
    driver.stop()
    return settings


def checked(spark: SparkSession, settings: Settings, name: str) -> CheckResult:
    return check_stores(spark, settings, CheckRequest(name, (StoreName.CHANGELOG,), Mode.FULL, name))


def newest(settings: Settings, name: str) -> dict[bytes, Message]:
    """Return the newest record of each key of a changelog, also of one that was removed."""
    found = records_of(settings, f"{name}.v1.changelog")
    return {message.key() or b"": message for message in found}


def append(settings: Settings, name: str, message: Message, value: bytes) -> None:
    producer = Producer(settings.kafka_connection.client_settings)
    producer.produce(f"{name}.v1.changelog", value, message.key(), partition=message.partition() or 0)
    assert producer.flush(30) == 0


def plant(settings: Settings, fault: Fault) -> str:
    """Plant a fault in one of the keys, and return it."""
    record = next(m for m in newest(settings, fault.read_model).values() if m.value() is not None)
    value, key = record.value() or b"", record.key()
    assert isinstance(key, bytes)
    model = read_model(fault.read_model, (system_folder("logs"),))
    schema = fastavro.parse_schema(model.state_schema.parsed())
    state = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), schema, None)
    assert isinstance(state, dict)
    wrong = io.BytesIO()
    fastavro.schemaless_writer(wrong, schema, state | {fault.field: state[fault.field] + 1})
    append(settings, fault.read_model, record, value[:HEADER_BYTES] + wrong.getvalue())
    return key.decode()


def return_expired_window(settings: Settings) -> str:
    """Append the last record of the window that expired first to the changelog again, and return its key."""
    changelog = records_of(settings, f"{WINDOWS}.v1.changelog")
    removed = {message.key() for message in changelog if message.value() is None}
    # Keys end with the time of the window.
    first = min((key for key in removed if isinstance(key, bytes)), key=lambda key: key.partition(b"/")[2])
    last = [m for m in changelog if m.key() == first and m.value() is not None][-1]
    append(settings, WINDOWS, last, last.value() or b"")
    return first.decode()


def test_the_lake_has_each_browser_event_once_and_the_windows_that_are_left(
    still: Settings, lake_spark: SparkSession, check: Check
) -> None:
    catalog = load_catalog((system_folder("logs"),))
    append_new(lake_spark, still, catalog.event_tables[TABLE])
    compact(lake_spark, still, catalog.models[WINDOWS])

    lake = browser_events(table_path(still.lake_root, TABLE))
    rows = lake.execute('select "browserHash", "occurredOn", kind, action, solved from browser_events')
    check.read()
    check.connection.register("lake_rows", rows.fetch_arrow_table())
    on_topic = 'select "browserHash", "occurredOn", kind, action, solved from found_events'
    found = compare(check.connection, on_topic, "from lake_rows")
    assert found.is_exact, found
    assert found.found >= check.expected_rows("events")
    windows = DeltaTable(table_path(still.lake_root, WINDOWS)).to_pyarrow_table(columns=["key", "actions"])
    left = states(still, catalog.models[WINDOWS], f"{WINDOWS}.v1.changelog")
    assert {row["key"]: row["actions"] for row in windows.to_pylist()} == {
        key: record.state["actions"] for key, record in left.items()
    }


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.read_model)
def test_each_planted_fault_is_found_and_nothing_else(
    still: Settings, lake_spark: SparkSession, fault: Fault
) -> None:
    expected: dict[str, tuple[str, ...]] = {plant(still, fault): (folds_to(fault.field),)}
    if fault.read_model == WINDOWS:
        expected[return_expired_window(still)] = (NO_ENDED_KEY,)

    result = checked(lake_spark, still, fault.read_model)

    assert named(result) == expected
