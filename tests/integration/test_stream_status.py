"""The stream's lag and the age of its newest event are measured on its topics, whatever is at their ends."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from confluent_kafka import Producer, murmur2

from include.declarations.load import read_model
from include.settings import Settings
from include.status.flow_status import FlowKind, FlowStatus
from include.status.measurement import LONG_TAIL_RECORDS, TAIL_RECORDS, read_stream_status
from include.stream.folded_offsets import QUIET_S, STANDSTILL_S
from tests.support.balance_copy import with_balance_copy
from tests.support.changelog_writer import ChangelogWriter
from tests.support.faults.transactions import TransactionalWriter
from tests.support.waiting import wait_until

MODEL = "status-test"
CUSTOMER = "customer"
EVENTS = TAIL_RECORDS + 200


@pytest.fixture(scope="module")
def measured(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with an additional read model, whose topics only this test uses."""
    return with_balance_copy(settings, MODEL, tmp_path_factory.mktemp("read_models"))


def status(settings: Settings) -> FlowStatus:
    (fold,) = (f for f in read_stream_status(settings).of_kind(FlowKind.FOLD) if f.name == MODEL)
    return fold


def lag(settings: Settings) -> int | None:
    return status(settings).events_behind


def test_lag_is_zero_when_older_records_were_written_last(measured: Settings) -> None:
    writer = ChangelogWriter(measured, model=read_model(MODEL, measured.declaration_folders))
    writer.make_topics()
    writer.register_live()
    producer = Producer({**measured.kafka_connection.client_settings, "partitioner": "murmur2_random"})
    for _ in range(EVENTS):
        producer.produce(MODEL, b"the status does not decode events", CUSTOMER)
    assert producer.flush(30) == 0
    assert lag(measured) == EVENTS
    wait_until(lambda: (status(measured).still_s or 0) > STANDSTILL_S, "the folds stand still", timeout_s=30)

    writer.write(CUSTOMER, Decimal("1.00"), source_offset=EVENTS - 51)
    writer.flush()
    assert lag(measured) == 50

    for offset in [EVENTS - 1, *range(EVENTS - 1)]:
        writer.write(CUSTOMER, Decimal("1.00"), source_offset=offset)
    writer.flush()
    assert lag(measured) in {0, 1}, "at first, only the end of the changelog is read"
    wait_until(lambda: lag(measured) == 0, "the newest record is found", timeout_s=10 * QUIET_S)
    assert EVENTS < LONG_TAIL_RECORDS
    assert status(measured).still_s is None, "no event waits"


def test_aborted_records_on_the_source_are_no_lag(measured: Settings) -> None:
    assert lag(measured) == 0
    TransactionalWriter(measured, MODEL).abort([(CUSTOMER.encode(), b"aborted")] * 500)

    found = status(measured)

    assert (found.events_behind, found.still_s) == (0, None)


def test_an_event_time_in_the_future_is_named_and_does_not_change_the_age_of_the_newest_event(
    measured: Settings,
) -> None:
    assert status(measured).event_time_ahead is None
    writer = ChangelogWriter(measured, model=read_model(MODEL, measured.declaration_folders))
    partition = murmur2(CUSTOMER.encode(), measured.topics.partitions)
    ahead = timedelta(days=3)
    began = datetime.now(UTC)
    for occurred_on in (began - ahead, began + ahead, began):
        writer.write(CUSTOMER, Decimal("1.00"), source_offset=EVENTS - 1, occurred_on=occurred_on)
    writer.flush()

    found = status(measured)

    assert found.event_time_ahead is not None
    assert found.event_time_ahead.event == f"partition={partition}, offset={EVENTS - 1}"
    assert found.event_time_ahead.ahead_s == pytest.approx(ahead.total_seconds(), abs=600)
    assert found.newest_event_age_s is not None
    assert 0 <= found.newest_event_age_s < 600
    later = status(measured).newest_event_age_s
    assert later is not None
    assert later > found.newest_event_age_s, "no event was appended"
