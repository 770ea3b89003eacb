"""How far a query has read its source, according to the newest records of its changelog or of its output topic, and whether it is stalled.

Dead letters, and records of event types that the version does not fold, never appear in a changelog. The dead-letter topic and
the offsets that the query commits say how far the source has been read nevertheless; in real-time mode, a query commits at the
end of each interval only.
"""

import time
from dataclasses import dataclass
from itertools import chain

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.kafka.dead_letters import newest_dead_letters
from include.kafka.log_reading import read_tail, record_at
from include.kafka.origins import WrittenRecords
from include.kafka.record_schema import RecordSchema
from include.kafka.state_record import StateRecord, decode_state_record
from include.kafka.topics import dead_letter_topic, partition_count
from include.position import Offsets, Position
from include.stream.query_reports import FOLDING, QueryReport

# The tasks of a query write concurrently: the newest event's record may not be the last one.
TAIL_RECORDS = 20
# Enough to include an output of every source partition in most cases.
OUTPUT_TAIL_RECORDS = 300
# A changelog to which nothing was written for this time is quiet: the tasks that wrote a batch have ended.
QUIET_S = 2.0
# The clocks of producers may differ from the broker's by this much.
EVENT_TIME_AHEAD_S = 60.0
# Folds that are at work fold an event within milliseconds, a batch of a catch-up within seconds.
STANDSTILL_S = 5.0
# The time that the commit at the end of an interval can take.
COMMIT_S = 60.0


def folded_offsets(
    consumer: Consumer, changelog: str, partitions: int, state_schema: RecordSchema
) -> Offsets:
    """Return the source offsets after the newest events in the last records of each partition of a changelog.

    Raises KafkaUnavailableError.
    """
    tail = ChangelogTail(state_schema)
    tail.add(consumer, changelog, partitions, TAIL_RECORDS)
    return tail.offsets


def written_offsets(consumer: Consumer, topic: str, partitions: int, records: WrittenRecords) -> Offsets:
    """Return the source offsets after the newest outputs of a route or an emission; raises KafkaUnavailableError."""
    newest: dict[int, int] = {}
    for message in chain.from_iterable(
        read_tail(consumer, topic, p, OUTPUT_TAIL_RECORDS) for p in range(partitions)
    ):
        found = records.source(message)
        if found is not None:
            source, origin = found
            newest[source] = max(origin.offset, newest.get(source, 0))
    return Offsets.of_newest(newest)


@dataclass(frozen=True)
class EventTimeAhead:
    """The state record whose newest event time is furthest ahead of the time at which its newest event was appended.

    event: position of that event. ahead_s: by how much, more than EVENT_TIME_AHEAD_S.
    """

    event: str
    ahead_s: float


class ChangelogTail:
    """How far a version has folded its source, according to the last records of its topics.

    written_at_s: the time of the newest of these records; None if there is none.
    """

    def __init__(self, state_schema: RecordSchema) -> None:
        self._state_schema = state_schema
        self.offsets = Offsets()
        self._furthest_ahead: tuple[float, StateRecord] | None = None
        self.written_at_s: float | None = None

    def add(self, consumer: Consumer, topic: str, partitions: int, records: int) -> None:
        """Include the last `records` records of each partition of the changelog."""
        for message in chain.from_iterable(read_tail(consumer, topic, p, records) for p in range(partitions)):
            written_at_s = message.timestamp()[1] / 1000
            self.written_at_s = max(self.written_at_s or written_at_s, written_at_s)
            value = message.value()
            if value is None:
                self._include(Position.of_removal(message.headers()))
                continue
            record: StateRecord = decode_state_record(value, lambda _id: self._state_schema)
            self._include(record.position)
            ahead_s = record.occurred_on.timestamp() - written_at_s
            if self._furthest_ahead is None or ahead_s > self._furthest_ahead[0]:
                self._furthest_ahead = ahead_s, record

    def _include(self, position: Position | None) -> None:
        if position is not None:
            self.offsets = self.offsets.with_event(position)

    def waiting_s(self, consumer: Consumer, source_topic: str, ends: Offsets) -> float:
        """Return for how long an event has waited while none was folded; 0 when none waits."""
        waiting = {p: self.offsets.of(p) for p, end in ends.items() if self.offsets.of(p) < end}
        oldest = (record_at(consumer, source_topic, p, offset) for p, offset in waiting.items())
        since_s = min(
            (message.timestamp()[1] / 1000 for message in oldest if message is not None), default=None
        )
        return 0.0 if since_s is None else max(0.0, time.time() - max(since_s, self.written_at_s or 0.0))

    def event_time_ahead(self, consumer: Consumer, source_topic: str) -> EventTimeAhead | None:
        """Return the record whose event time is in the future, by the time at which its newest event was appended."""
        if self._furthest_ahead is None or self._furthest_ahead[0] <= EVENT_TIME_AHEAD_S:
            return None
        ahead_s, record = self._furthest_ahead
        position = record.position
        event = record_at(consumer, source_topic, position.partition, position.offset)
        if event is not None and event.offset() == position.offset:
            ahead_s = record.occurred_on.timestamp() - event.timestamp()[1] / 1000
        return EventTimeAhead(f"partition={position.partition}, offset={position.offset}", ahead_s)

    def is_quiet(self) -> bool:
        """Return whether there are state records and the newest is older than QUIET_S."""
        return self.written_at_s is not None and time.time() - self.written_at_s > QUIET_S


def is_stalled(waiting_s: float, query: QueryReport | None, real_time_interval_s: float) -> bool:
    """Return whether folding has stalled, after events have waited for `waiting_s` seconds and none was folded.

    A query that the driver reports as folding may have read only records that it does not fold: it has stalled only when its
    next commit does not appear either.
    """
    is_folding = query is not None and query.is_fresh and query.phase in FOLDING
    return waiting_s > (real_time_interval_s + COMMIT_S if is_folding else STANDSTILL_S)


def read_offsets(
    admin: AdminClient, consumer: Consumer, source_topic: str, query: QueryReport | None
) -> Offsets:
    """Return how far the source has been read according to the query's last commit and the newest dead letters.

    Raises KafkaUnavailableError.
    """
    committed = Offsets() if query is None else Offsets.from_json(query.last_batch.end_offsets)
    partitions = partition_count(admin, dead_letter_topic(source_topic)) or 0
    return committed.merge(newest_dead_letters(consumer, source_topic, partitions))
