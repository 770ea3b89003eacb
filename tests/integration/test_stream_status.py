"""The stream's lag is measured on its topics, even if the newest record is far from the changelog's end."""

from decimal import Decimal

import pytest
from confluent_kafka import Producer

from include.declarations.read_model import read_model
from include.settings import Settings
from include.stream.standstill import STANDSTILL_S
from include.stream.status import (
    LONG_TAIL_RECORDS,
    QUIET_S,
    TAIL_RECORDS,
    VersionStatus,
    read_stream_status,
)
from tests.support.balance_copy import with_balance_copy
from tests.support.changelog_writer import ChangelogWriter
from tests.support.waiting import wait_until

MODEL = "status-test"
CUSTOMER = "customer"
EVENTS = TAIL_RECORDS + 200


@pytest.fixture(scope="module")
def measured(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with an additional read model, whose topics only this test uses."""
    return with_balance_copy(settings, MODEL, tmp_path_factory.mktemp("read_models"))


def status(settings: Settings) -> VersionStatus:
    (version,) = (v for v in read_stream_status(settings).versions if v.read_model == MODEL)
    return version


def lag(settings: Settings) -> int:
    return status(settings).events_behind


def test_lag_is_zero_when_older_records_were_written_last(measured: Settings) -> None:
    writer = ChangelogWriter(measured, model=read_model(MODEL, measured.declaration_folders))
    writer.make_topics()
    writer.register_live()
    producer = Producer(
        {"bootstrap.servers": measured.kafka.bootstrap_servers, "partitioner": "murmur2_random"}
    )
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
