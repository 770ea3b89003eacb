"""A kind of declaration in one file of a user's folder: it writes each output once, and is seen wherever the built-in kinds are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from include.kafka.events import event_key
from include.kafka.topics import dead_letter_topic
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from include.status.flow_status import FlowStatus
from include.status.measurement import read_stream_status
from include.stream.query_reports import Phase
from include.stream.slot_planning import query_slots
from query_api.metrics.status_metrics import stream_exposition
from tests.support.stream_process import EventSource, make_topics, records_of
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[2] / "support" / "read_models_with_kind"
SOURCE, OUTPUT, QUERY = "balance", "first-deposits", "distinct/first-deposits"
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS_PER_ROUND = 1_500


@pytest.fixture(scope="module")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home with a declaration of the kind `distinct`."""
    with sharing_servers(
        servers, keep_home, stream_spare_queries=0, **SHORT_COMMITS, read_models_dir=DECLARATIONS
    ) as home:
        yield home


@pytest.fixture(scope="module")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared


@dataclass
class Deposits:
    """Appends deposits, and knows the first one of each customer: key -> value of the record."""

    source: EventSource
    first: dict[bytes, bytes] = field(default_factory=dict)
    _number: int = 0

    def append(self, count: int) -> None:
        """Append deposits: those of new customers between further ones of customers who have made one."""
        for _ in range(count):
            self._number += 1
            number = self._number
            event = FundsAdded(
                customerId=f"customer-{number if number % 3 == 0 else number % 50}",
                amount=Decimal(number) / 4,
                id=str(number),
                occurredOn=START + timedelta(seconds=number),
            )
            key, value = event_key(event), self.source.serializer.serialize(event)
            self.first.setdefault(key, value)
            self.source.append_raw(key, value)
        self.source.flush()


@pytest.fixture(scope="module")
def deposits(settings: Settings) -> Deposits:
    """What is appended to the source."""
    make_topics(settings, SOURCE)
    return Deposits(EventSource(settings, SOURCE))


def flow(settings: Settings) -> FlowStatus:
    """Return the flow of the declaration in the status document."""
    (found,) = read_stream_status(settings).of_kind("distinct")
    return found


def wait_for_outputs(settings: Settings, deposits: Deposits) -> None:
    wait_until(
        lambda: (flow(settings).records or 0) >= len(deposits.first), "the first deposits", timeout_s=240
    )


def require_exact(settings: Settings, deposits: Deposits) -> None:
    """Wait until the flow has caught up; fail unless it has forwarded the first deposit of each customer, once and unchanged."""
    wait_for_outputs(settings, deposits)
    wait_until(lambda: flow(settings).events_behind == 0, "the flow has read every event", timeout_s=120)
    found = [(record.key(), record.value()) for record in records_of(settings, OUTPUT)]
    assert sorted(found, key=str) == sorted(deposits.first.items(), key=str)


def test_each_first_event_is_forwarded_once_after_a_kill_of_the_driver(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    wait_for_outputs(settings, deposits)
    deposits.append(EVENTS_PER_ROUND)
    driver.kill()
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    require_exact(settings, deposits)
    # In real time, after the catch-up.
    deposits.append(50)
    require_exact(settings, deposits)


def test_a_restarted_driver_forwards_no_event_of_a_known_key(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    driver.stop()
    driver.ensure_running()
    deposits.append(200)
    require_exact(settings, deposits)


def test_the_status_document_has_it_with_its_lag_and_slots(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    require_exact(settings, deposits)
    wait_until(
        lambda: (report := flow(settings).report) is not None and report.phase == Phase.REAL_TIME,
        "the flow is in real time",
        timeout_s=120,
    )
    document = read_stream_status(settings).to_json()
    (row,) = (one for one in document["flows"] if one["kind"] == "distinct")
    expected = {
        "query": QUERY,
        "name": "first-deposits",
        "belongs_to": "first-deposits",
        "stage": "live",
        "source_topic": SOURCE,
        "output_topic": OUTPUT,
        "events_behind": 0,
        "records": len(deposits.first),
    }
    assert {name: row[name] for name in expected} == expected
    slots = query_slots(settings.stream, settings.topics.partitions)
    assert row["report"]["task_slots"] == slots
    without = settings.changed(read_models_dir=None)
    assert stream_task_slots(settings) == stream_task_slots(without) + slots


def test_metrics_have_it(settings: Settings, driver: SharedDriver, deposits: Deposits) -> None:
    driver.ensure_running()
    require_exact(settings, deposits)
    text = stream_exposition(read_stream_status(settings)).decode()
    labels = '{kind="distinct",name="first-deposits",stage="live",version=""}'
    assert f"foldlake_stream_output_events_behind{labels} 0.0" in text
    assert f"foldlake_stream_output_events{labels} " in text
    assert f'foldlake_stream_query_restarts{{phase="real time",query="{QUERY}"}}' in text


def test_what_it_cannot_read_becomes_a_dead_letter(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    deposits.source.append_raw(b"customer-1", b"junk")
    deposits.append(10)
    letters = dead_letter_topic(SOURCE)
    wait_until(lambda: len(records_of(settings, letters)) == 1, "the dead letter", timeout_s=120)
    require_exact(settings, deposits)
