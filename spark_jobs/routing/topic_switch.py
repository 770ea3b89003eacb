"""The handover of an emission's consumers' topic between versions of a read model that fold different versions of its source topic.

Offsets of two versions of a topic cannot be compared. What can be are the originals: the events of which routes made the records of both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from confluent_kafka import Consumer

from include.errors import FoldlakeError
from include.kafka.log_reading import read_tail
from include.kafka.origins import SourceEvent, WrittenRecords
from include.position import Offsets


class NotRoutedError(FoldlakeError):
    """A record of a source topic has no original: no route wrote it."""


@dataclass(frozen=True)
class TopicSwitch:
    """A version takes over the consumers' topic from one that folds another source topic.

    version, live_since: of the version that takes over.
    before, after: the source topics of the two versions.
    routed: by source of the routes to `before`: what they had routed when the version before had stopped. Events of which nothing is in
        `before` although they lie below were left out by these routes.
    ends: of `after`. What consumers have received is below them, if `after` has it at all, and the version has emitted to its own
        topic up to them.
    """

    version: int
    live_since: str
    before: str
    after: str
    routed: Mapping[str, Offsets]
    ends: Offsets

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "TopicSwitch":
        """Read a change."""
        return cls(
            version=fields["version"],
            live_since=fields["live_since"],
            before=fields["before"],
            after=fields["after"],
            routed={topic: Offsets.from_json(offsets) for topic, offsets in fields["routed"].items()},
            ends=Offsets.from_json(fields["ends"]),
        )


@dataclass
class TakeoverState:
    """What a job knows of a take-over by the version that became live at `live_since`. Each step is fixed once the one before is done.

    before, routed: as in TopicSwitch. source_ends: the ends of the sources of the routes to the version's topic, once nobody writes to the
        consumers' topic. ends: as in TopicSwitch, once these routes have committed the ends of their sources.
    switch: once the version has committed `ends`; None if it folds the same topic as the version before.
    """

    live_since: str
    is_complete: bool = False
    before: str = ""
    routed: Mapping[str, Offsets] = field(default_factory=dict)
    source_ends: Mapping[str, Offsets] | None = None
    ends: Offsets | None = None
    switch: TopicSwitch | None = None

    def forget(self) -> None:
        """Begin again."""
        self.is_complete = False
        self.source_ends = self.ends = self.switch = None


class ConsumedEvents:
    """The events of which consumers need no record: the version before emitted them, or its routes left them out.

    routed: as in TopicSwitch. A source that is not among them is no longer routed to the topic: it was, up to its newest original there.
    """

    def __init__(self, routed: Mapping[str, Offsets]) -> None:
        self._routed = routed
        self._newest: dict[tuple[str, int], int] = {}
        self._emitted: set[SourceEvent] = set()
        self._unemitted: set[SourceEvent] = set()

    def add(self, original: SourceEvent, *, is_emitted: bool) -> None:
        """Add an event of the topic that the version before has folded; is_emitted: whether consumers have what it emitted for it."""
        if not is_emitted:
            self._unemitted.add(original)
        if original.topic not in self._routed:
            source = (original.topic, original.partition)
            self._newest[source] = max(original.offset, self._newest.get(source, 0))
        elif is_emitted and not self._is_routed(original):
            self._emitted.add(original)

    def lacks(self, original: SourceEvent) -> bool:
        """Return whether an event's record is to be sent to consumers."""
        if original in self._unemitted:
            return True
        return not self._is_routed(original) and original not in self._emitted

    def _is_routed(self, original: SourceEvent) -> bool:
        if original.topic in self._routed:
            return original.offset < self._routed[original.topic].of(original.partition)
        return original.offset <= self._newest.get((original.topic, original.partition), -1)


def emitted_offsets(
    consumer: Consumer, topic: str, partitions: int, records: WrittenRecords, since: Offsets
) -> set[tuple[int, int]]:
    """Return partition and offset of the source records, from these offsets on, of which an emission's records in a topic were made.

    Reads the whole topic. Raises KafkaUnavailableError.
    """
    found = set()
    for partition in range(partitions):
        for message in read_tail(consumer, topic, partition):
            source = records.source(message)
            if source is not None and source[1].offset >= since.of(source[0]):
                found.add((source[0], source[1].offset))
    return found


def consumed_events(
    consumer: Consumer,
    change: TopicSwitch,
    partitions: int,
    completed: Offsets,
    emitted: set[tuple[int, int]],
) -> ConsumedEvents:
    """Return the events of which consumers need no record. Reads the whole of `change.before`, which has this number of partitions.

    completed: below these offsets of `change.before`, consumers have everything that the version before emitted.
    emitted: those from there on for which it has emitted.

    Raises KafkaUnavailableError, NotRoutedError.
    """
    events = ConsumedEvents(change.routed)
    for partition in range(partitions):
        for offset, original in _originals(consumer, change.before, partition):
            is_emitted = offset < completed.of(partition) or (partition, offset) in emitted
            events.add(original, is_emitted=is_emitted)
    return events


def lacking_offsets(consumer: Consumer, change: TopicSwitch, events: ConsumedEvents) -> set[tuple[int, int]]:
    """Return partition and offset of the records below `change.ends` that are to be sent to consumers.

    Raises KafkaUnavailableError, NotRoutedError.
    """
    found = set()
    for partition, end in change.ends.items():
        for offset, original in _originals(consumer, change.after, partition):
            if offset >= end:
                break
            if events.lacks(original):
                found.add((partition, offset))
    return found


def _originals(consumer: Consumer, topic: str, partition: int) -> Iterator[tuple[int, SourceEvent]]:
    for message in read_tail(consumer, topic, partition):
        original = SourceEvent.of(message)
        offset = message.offset() or 0
        if original is None:
            raise NotRoutedError(
                f"The record at offset {offset} of {topic}/{partition} was not written by a route, so that it is not known whether "
                "consumers have received its event"
            )
        yield offset, original
