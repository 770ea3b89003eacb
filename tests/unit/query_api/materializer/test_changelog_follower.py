"""A follower waits for the schema registry until it is stopped, and reads a partition whose offset is lost from the beginning."""

import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from include.boot_clock import Moment
from include.errors import RegistryUnavailableError
from include.kafka.wire_format import header
from query_api.errors import FollowingStoppedError
from query_api.materializer.changelog_follower import ChangelogFollower
from query_api.store.base import Change, ChangelogPosition
from query_api.store.lmdb import LmdbBackend

DEADLINE_S = 10.0


class Record:
    """A changelog record with a new schema id."""

    def error(self) -> None:
        """Return no error."""

    def partition(self) -> int:
        """Return the partition."""
        return 0

    def offset(self) -> int:
        """Return the offset."""
        return 0

    def key(self) -> bytes:
        """Return the key."""
        return b"k"

    def value(self) -> bytes:
        """Return a framed value."""
        return header(7) + b"x"


class OneRecord:
    """A consumer that returns one record."""

    def assign(self, partitions: object) -> None:
        """Provide the record for any assignment."""

    def poll(self, timeout: float) -> Record:
        """Return the record."""
        _ = timeout
        return Record()

    def consume(self, count: int, timeout: float) -> list[Record]:
        """Return no further records."""
        _ = count, timeout
        return []


class UnavailableRegistry:
    """A schema registry that does not answer."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def usable_schema(self, schema_id: int) -> None:
        """Raise the error of an unavailable registry."""
        self.asked.set()
        raise RegistryUnavailableError(str(schema_id))


def test_waiting_for_the_registry_ends_when_the_follower_is_stopped(tmp_path: Path) -> None:
    store = LmdbBackend(1024 * 1024).open_writer(tmp_path, 1)
    consumer: Any = OneRecord()
    registry: Any = UnavailableRegistry()
    follower = ChangelogFollower(
        "topic", store, consumer, registry, release_grace_s=0, previously_ready={}, on_change=lambda: None
    )
    follower.set_target(frozenset({0}))
    ended: list[Exception] = []

    def follow() -> None:
        with pytest.raises(FollowingStoppedError) as raised:
            follower.run_once()
        ended.append(raised.value)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert registry.asked.wait(DEADLINE_S)
    assert thread.is_alive(), "it waits"

    follower.stop()
    thread.join(DEADLINE_S)

    assert ended
    assert store.positions() == {}, "no part of the batch is committed"
    store.close()


class LostOffset(Record):
    """A consumer's message that partition 0 no longer has the offset it was assigned."""

    def error(self) -> KafkaError:  # type: ignore[override]  # the other records have none
        """Return the error."""
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)


class WithLostOffset:
    """A consumer that returns the error of partition 0 once."""

    def __init__(self) -> None:
        self.assigned: list[dict[int, int]] = []
        self.left: list[Record] = [LostOffset()]

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Note the offsets."""
        self.assigned.append({start.partition: start.offset for start in partitions})

    def poll(self, timeout: float) -> Record | None:
        """Return the error, then nothing."""
        _ = timeout
        return self.left.pop() if self.left else None

    def consume(self, count: int, timeout: float) -> list[Record]:
        """Return no further messages."""
        _ = count, timeout
        return []

    def get_watermark_offsets(self, partition: object, *, cached: bool) -> None:
        """Return none."""
        _ = partition, cached


def test_partition_whose_offset_is_lost_is_forgotten_and_read_from_the_beginning(tmp_path: Path) -> None:
    store = LmdbBackend(1024 * 1024).open_writer(tmp_path, 2)
    position = ChangelogPosition.at(7, Moment.now())
    store.commit({p: [Change(b"k", 1, 6, b"v")] for p in (0, 1)}, {0: position, 1: position}, {})
    recording = WithLostOffset()
    consumer: Any = recording
    registry: Any = None
    follower = ChangelogFollower(
        "topic", store, consumer, registry, release_grace_s=0, previously_ready={}, on_change=lambda: None
    )
    follower.set_target(frozenset({0, 1}))

    follower.run_once()

    assert recording.assigned[-1] == {0: OFFSET_BEGINNING, 1: 7}
    assert store.positions() == {1: position}
    assert store.record_count() == 1
    assert not follower.partitions()[0].is_ready
    store.close()
