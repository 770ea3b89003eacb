"""After a power failure that cost Kafka its newest records, no event is folded into a state that does not follow from the log.

The query is refused, with the reason, also once new records have taken the lost offsets; a new version folds the log as it is. Dead
letters are read again by themselves. The truncation of the broker's files stands for the power failure: it does not sync them.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import murmur2

from include.kafka.log_reading import end_offsets, log_consumer
from include.position import Offsets
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.stream.checkpoints import log_note_path
from include.stream.query_reports import query_status
from include.versions.registry import VersionRegistry, change
from include.versions.transitions import hand_over, register
from stack.components.kafka import data_directory
from stack.lifecycle import start, stop
from tests.support.commands import event_fields
from tests.support.stream_events import BALANCE
from tests.support.stream_process import EventSource, records_of, states
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

SERVERS = ("kafka", "registry")
DEAD_LETTERS = f"{BALANCE.source_topic}.dead-letter"
# Of the same size, so that the truncation of a file removes the newest ones.
CUSTOMERS = [f"customer {number:03}" for number in range(40)]
LOST_PARTITION = 1


@pytest.fixture
def settings(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with a broker of its own."""
    with temporary_stack(
        SERVERS, keep_home, stream_real_time_interval_s=5, stream_spare_queries=1
    ) as settings:
        yield settings


def partition_of(customer: str, settings: Settings) -> int:
    return murmur2(customer.encode(), settings.topics.partitions)


def append(source: EventSource, customers: list[str]) -> None:
    """Append an event for each customer, one after the other, so that each is a batch of its own in the broker's file."""
    for customer in customers:
        source.append([FundsAdded(customerId=customer, amount=Decimal("1.00"))])


def on_log(settings: Settings) -> dict[str, int]:
    """Return the number of events on the log of each customer."""
    events = (m for m in records_of(settings, BALANCE.source_topic) if (m.value() or b"").startswith(b"\0"))
    return dict(Counter(str(event_fields(message)["customerId"]) for message in events))


def folded(settings: Settings, number: int) -> dict[str, int]:
    """Return the number of events in each customer's state."""
    found = states(settings, BALANCE, f"balance.v{number}.changelog")
    return {key: record.event_count for key, record in found.items()}


def ends(settings: Settings, topic: str) -> Offsets:
    consumer = log_consumer(settings.kafka_connection)
    try:
        return Offsets.of_ends(end_offsets(consumer, topic, settings.topics.partitions))
    finally:
        consumer.close()


def is_committed(settings: Settings) -> bool:
    status = query_status(settings.kafka_connection, "balance", 1)
    committed = Offsets() if status is None else Offsets.from_json(status.last_batch.end_offsets)
    return committed.covers(ends(settings, BALANCE.source_topic))


def fails_power(settings: Settings, *lost: tuple[str, int, int]) -> None:
    """Stop the servers, remove the newest bytes of partitions (topic, partition, bytes), and start the servers."""
    stop(settings)
    data = data_directory(settings.home)
    for topic, partition, size in lost:
        (file,) = (data / f"{topic}-{partition}").glob("*.log")
        os.truncate(file, file.stat().st_size - size)
    # Written by an orderly stop: without it, the broker checks its files as after a power failure.
    (data / ".kafka_cleanshutdown").unlink()
    start(settings, SERVERS)


def refusal(settings: Settings, number: int) -> str:
    status = query_status(settings.kafka_connection, "balance", number)
    return status.last_error if status is not None and status.phase == "refused" else ""


def wait_until_noted(settings: Settings) -> None:
    for checkpoint in ("balance/v1", "dead-letter/balance"):
        note = Path(log_note_path(f"{settings.checkpoints}/{checkpoint}"))
        wait_until(note.exists, "the logs are noted")


def fold_once(settings: Settings, source: EventSource) -> None:
    """Fold an event of each customer, and a bad record, and commit them; the second start notes what the logs contain."""
    with stream_driver(settings):
        append(source, CUSTOMERS)
        source.append_raw(b"customer 000", b"garbage")
        source.flush()
        wait_until(lambda: folded(settings, 1) == dict.fromkeys(CUSTOMERS, 1), "all events are folded")
        wait_until(lambda: len(records_of(settings, DEAD_LETTERS)) == 1, "the bad record is a dead letter")
        wait_until(lambda: is_committed(settings), "they are committed")
    with stream_driver(settings):
        wait_until_noted(settings)


@pytest.mark.endurance
def test_source_that_lost_its_newest_events_is_not_folded_into_the_old_state(settings: Settings) -> None:
    source = EventSource(settings, BALANCE.source_topic)
    fold_once(settings, source)
    here = [c for c in CUSTOMERS if partition_of(c, settings) == LOST_PARTITION]

    fails_power(settings, (BALANCE.source_topic, LOST_PARTITION, 10))
    assert sum(on_log(settings).values()) == len(CUSTOMERS) - 1

    with stream_driver(settings):
        wait_until(lambda: "was read up to offset" in refusal(settings, 1), "the query is refused")
        # A producer that knows the lost events fails. New events take the lost offset and those after it. A test of the ends alone does not find anything then.
        source = EventSource(settings, BALANCE.source_topic)
        append(source, here)
        wait_until(lambda: "is not the one that was read" in refusal(settings, 1), "it is still refused")
        assert "rebuild the read model" in refusal(settings, 1)
        assert folded(settings, 1) == dict.fromkeys(CUSTOMERS, 1), (
            "no new event was folded into the old state"
        )
        with VersionRegistry(settings.kafka_connection) as registry:
            candidate = partial(
                register, run_id="test", reason="lost records", fold_revision=1, now=datetime.now(UTC)
            )
            change(registry, "balance", candidate)
            change(registry, "balance", partial(hand_over, number=2))
        wait_until(
            lambda: folded(settings, 2) == on_log(settings), "a new version contains what is on the log"
        )
        source.append_raw(b"customer 001", b"garbage")
        source.flush()
        wait_until(lambda: len(records_of(settings, DEAD_LETTERS)) == 2, "dead letters continue")


@pytest.mark.endurance
def test_changelog_that_lost_its_newest_records_is_not_continued(settings: Settings) -> None:
    source = EventSource(settings, BALANCE.source_topic)
    fold_once(settings, source)

    fails_power(
        settings,
        ("balance.v1.changelog", LOST_PARTITION, 10),
        (DEAD_LETTERS, partition_of("customer 000", settings), 10),
    )

    with stream_driver(settings):
        wait_until(lambda: "balance.v1.changelog/1 ended at" in refusal(settings, 1), "the query is refused")
        wait_until(lambda: len(records_of(settings, DEAD_LETTERS)) == 1, "the lost letter is written again")
