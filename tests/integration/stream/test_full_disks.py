"""A driver or broker whose disk is full loses nothing, and continues by itself when there is space."""

import shutil
from collections.abc import Iterator

import pytest

from include.settings import Settings
from include.stream.query_reports import CONTINUOUS, query_status
from stack.lifecycle import start
from stack.stack_guard import guarded
from stack.supervision.supervisor import Supervisor
from tests.integration.stream.conftest import PACED
from tests.support.faults.small_disk import SmallDisk, small_disk
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import temporary_settings
from tests.support.unsupervised_driver import SharedDriver, stream_driver
from tests.support.waiting import wait_until

SERVERS = ("kafka", "registry")
CHANGELOG = f"{PACED}.v1.changelog"


@pytest.fixture(scope="module")
def broker_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    """The disk of a broker."""
    home = tmp_path_factory.mktemp("full") / "home"
    home.mkdir()
    with small_disk(home / "kafka", size_mb=192) as disk:
        yield disk
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def settings(broker_disk: SmallDisk) -> Iterator[Settings]:
    """Settings of a stack with a broker of its own, which has its disk to itself."""
    settings = temporary_settings(broker_disk.path.parent, stream_real_time_interval_s=5)
    with guarded(settings):
        start(settings, SERVERS)
        make_topics(settings, BALANCE.source_topic)
        yield settings


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> Ledger:
    return Ledger(settings)


def last_error(settings: Settings) -> str:
    status = query_status(settings.kafka_connection, PACED, 1)
    return "" if status is None or status.phase in CONTINUOUS else status.last_error


def test_driver_whose_checkpoint_has_no_space_folds_again_when_there_is_space(
    paced: Settings, disk: SmallDisk, driver: SharedDriver, paced_source: EventSource, paced_ledger: Ledger
) -> None:
    if disk.refusal:
        pytest.skip(disk.refusal)
    driver.ensure_running()
    paced_source.append(paced_ledger.random_events(200))
    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "all events are folded")

    with disk.filled():
        paced_source.append(paced_ledger.random_events(200))
        wait_until(lambda: "No space left on device" in last_error(paced), "the query says why it fails")

    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "all events are folded again")
    assert driver.process.poll() is None
    paced_ledger.assert_exact(paced, CHANGELOG)


@pytest.mark.endurance
def test_broker_without_space_has_every_acknowledged_event_when_there_is_space(
    settings: Settings, ledger: Ledger, broker_disk: SmallDisk
) -> None:
    with stream_driver(settings):
        source = EventSource(settings, BALANCE.source_topic)
        source.append(ledger.random_events(200))
        wait_until(lambda: ledger.is_folded(settings), "all events are folded")
        broker = Supervisor(settings).states()["kafka"].pid

        broker_disk.fill()
        # Acknowledged only after there is space: the producer keeps them meanwhile.
        for event in ledger.random_events(200):
            source.append_raw(event.customerId.encode(), source.serializer.serialize(event))
        wait_until(lambda: Supervisor(settings).states()["kafka"].pid != broker, "the broker has ended")
        broker_disk.free()
        source.flush()

        wait_until(lambda: ledger.is_folded(settings), "all events are folded")
        ledger.assert_exact(settings)
