"""The origin of a record that a route or an emission wrote: the source record that it was made of, in the record's headers.

Outputs of one lane are written into one output partition in the order of their origins. The newest origin of such a pair of lane and
output partition therefore says which outputs have been written. A route's lanes are the source partitions. An emission has a shuffle
between its source and its output, and its lanes are the ways through it: from a source partition to a shuffle task.

A record of a periodic emission has the tick at which it was written in its headers instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from confluent_kafka import Consumer, Message

from include.errors import FoldlakeError
from include.kafka.dead_letters import (
    ROUTE_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    SOURCE_TOPIC_HEADER,
)
from include.kafka.log_reading import newest_record, offset_bounds, read_from
from include.position import Offsets, parse_offset

SOURCE_INDEX_HEADER = "source_index"
# `<number>/<number of tasks>` of the shuffle task that computed an emission's record.
TASK_HEADER = "task"
HEADERS = (
    ROUTE_HEADER,
    SOURCE_TOPIC_HEADER,
    SOURCE_PARTITION_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_INDEX_HEADER,
)
# How far back the records of one writer are searched among those of others.
SEARCHED_RECORDS = 10_000
# The header of each record with its tick, in milliseconds since 1970.
TICK_HEADER = "tick"


class OtherTasksError(FoldlakeError):
    """A record was computed with another number of shuffle tasks."""


@dataclass(frozen=True, order=True, slots=True)
class OutputOrigin:
    """The offset of a source record, and the index of an output among those of this record, from 0."""

    offset: int
    index: int


class LanePartition(NamedTuple):
    """A lane and an output partition."""

    source: int
    output: int


class SourceEvent(NamedTuple):
    """The source record of a routed record; output: index of the routed record among those that the route made of it.

    It is the same in two versions of a topic, whose offsets cannot be compared.
    """

    topic: str
    partition: int
    offset: int
    output: int

    @classmethod
    def of(cls, message: Message) -> "SourceEvent | None":
        """Return the original of a routed record; None if no route wrote it."""
        found = _headers(message)
        try:
            _, topic, partition, offset, index = (found[name] for name in HEADERS)
            return cls(topic, parse_offset(partition), parse_offset(offset), parse_offset(index))
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True)
class WrittenRecords:
    """Which records of an output topic a route or an emission wrote from a source topic.

    tasks: number of its shuffle tasks; 0 for a route, which has no shuffle.
    """

    writer: str
    source_topic: str
    tasks: int = 0

    def lanes(self, partition: int) -> range:
        """Return the lanes of a source partition."""
        tasks = max(1, self.tasks)
        return range(partition * tasks, (partition + 1) * tasks)

    def partition(self, lane: int) -> int:
        """Return the source partition of a lane."""
        return lane // max(1, self.tasks)

    def origin(self, message: Message) -> tuple[int, OutputOrigin] | None:
        """Return lane and origin of a record; None if another writer wrote it.

        Raises OtherTasksError if it was computed with another number of shuffle tasks.
        """
        source = self.source(message)
        if source is None:
            return None
        partition, origin = source
        try:
            return self.lanes(partition)[self._task(_headers(message))], origin
        except (KeyError, ValueError):
            return None

    def source(self, message: Message) -> tuple[int, OutputOrigin] | None:
        """Return source partition and origin of a record, computed with any number of tasks; None if another writer wrote it."""
        found = _headers(message)
        try:
            writer, topic, partition, offset, index = (found[name] for name in HEADERS)
            if (writer, topic) != (self.writer, self.source_topic):
                return None
            return parse_offset(partition), OutputOrigin(parse_offset(offset), parse_offset(index))
        except (KeyError, ValueError):
            return None

    def _task(self, headers: Mapping[str, str]) -> int:
        if not self.tasks:
            return 0
        task, tasks = map(parse_offset, headers[TASK_HEADER].split("/"))
        if tasks != self.tasks:
            raise OtherTasksError(
                f"{self.writer} has written records with {tasks} shuffle tasks, and would go on with {self.tasks}."
            )
        return task


def _headers(message: Message) -> dict[str, str]:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return {name: (value or b"").decode(errors="replace") for name, value in headers}


def written_tasks(
    consumer: Consumer, topic: str, partitions: int, writer: str, source_topic: str
) -> int | None:
    """Return the number of shuffle tasks with which an emission has written to a topic; None if it has written nothing.

    Raises KafkaUnavailableError.
    """

    def is_own(message: Message) -> bool:
        found = _headers(message)
        return (found.get(ROUTE_HEADER), found.get(SOURCE_TOPIC_HEADER)) == (writer, source_topic)

    for partition in range(partitions):
        newest = newest_record(consumer, topic, partition, is_own, SEARCHED_RECORDS)
        if newest is not None:
            return parse_offset(_headers(newest)[TASK_HEADER].split("/")[1])
    return None


def merge_origins(
    first: Mapping[LanePartition, OutputOrigin], second: Mapping[LanePartition, OutputOrigin]
) -> dict[LanePartition, OutputOrigin]:
    """Return the newer origin of each pair."""
    merged = dict(first)
    for pair, origin in second.items():
        merged[pair] = max(origin, merged.get(pair, origin))
    return merged


def read_origins(
    consumer: Consumer, topic: str, partitions: int, since: Offsets, records: WrittenRecords
) -> dict[LanePartition, OutputOrigin]:
    """Return the newest origin of each pair among a writer's records in a topic, from these offsets to its end.

    Raises KafkaUnavailableError, OtherTasksError.
    """
    newest: dict[LanePartition, OutputOrigin] = {}
    for output in range(partitions):
        for message in read_from(consumer, topic, output, since.of(output)):
            found = records.origin(message)
            if found is not None:
                pair = LanePartition(found[0], output)
                newest[pair] = max(found[1], newest.get(pair, found[1]))
    return newest


def newest_tick(consumer: Consumer, topic: str, partitions: int) -> int | None:
    """Return the newest tick that was written to a topic, in milliseconds since 1970; None if there is none. Raises KafkaUnavailableError."""
    bounds = offset_bounds(consumer, topic, partitions)
    found = (
        newest_record(consumer, topic, partition, lambda message: tick_of(message) is not None, high - low)
        for partition, (low, high) in enumerate(bounds)
        if high > low
    )
    ticks = (tick_of(message) for message in found if message is not None)
    return max((tick for tick in ticks if tick is not None), default=None)


def tick_of(message: Message) -> int | None:
    """Return the tick of a record, in milliseconds since 1970; None if it has none."""
    headers = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
    value = headers.get(TICK_HEADER) or b""
    return int(value) if value.isdigit() else None
