"""How far a source has been read: for one key's record (`Position`), or for all partitions of a topic (`Offsets`).

The names, the order and the text form of a position are defined only here. State records (Avro), Spark columns, HTTP, the
lake's tags and the quality check's cut use them. docs/decisions/0006 explains why a position is a single offset.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self

# Every Kafka offset fits into 19 digits.
OFFSET_TEXT = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True)
class PositionField:
    """One field of a state record's position: its name, Avro type and meaning.

    maximum_of: the event column whose maximum it is, or None if it counts the events. The events of a key are in one
        partition, in order, so the maxima are the values of the newest event.
    """

    name: str
    avro_type: str | dict[str, Any]
    doc: str
    maximum_of: str | None = None


EVENT_COUNT = PositionField("event_count", "long", "Events folded into this record.")
SOURCE_PARTITION = PositionField(
    "source_partition", "int", "Partition of the newest event folded in.", "partition"
)
SOURCE_OFFSET = PositionField("source_offset", "long", "Offset of the newest event folded in.", "offset")
OCCURRED_ON = PositionField(
    "occurred_on",
    {"type": "long", "logicalType": "timestamp-millis"},
    "Newest occurredOn among the events folded in.",
    "occurredOn",
)
# In the order of every state record, table and report, after the state's own fields.
POSITION_RECORD_FIELDS = (EVENT_COUNT, SOURCE_PARTITION, SOURCE_OFFSET, OCCURRED_ON)
POSITION_COLUMNS = tuple(field.name for field in POSITION_RECORD_FIELDS)
# (event_count, source_partition, source_offset) of a decoded record; raises KeyError if one is absent.
position_values = itemgetter(EVENT_COUNT.name, SOURCE_PARTITION.name, SOURCE_OFFSET.name)
# Removals have no state record: their headers, as decimal text, are the position up to which the item's events were folded.
REMOVAL_HEADERS = (EVENT_COUNT.name, SOURCE_PARTITION.name, SOURCE_OFFSET.name)
_TEXT = "partition=%d, offset=%d, event_count=%d"
# (source_partition, source_offset, event_count), in the order of the text form.
text_values = itemgetter(SOURCE_PARTITION.name, SOURCE_OFFSET.name, EVENT_COUNT.name)


@dataclass(frozen=True, slots=True)
class Position:
    """How far the events of a key are folded into its record.

    partition, offset: of the newest event folded in.
    event_count: number of the key's events folded in; 0 for the position of a single event in the log.
    topic: the source topic; empty where the read model determines it, as in a state record.
    """

    partition: int
    offset: int
    event_count: int = 0
    topic: str = ""

    @classmethod
    def take_from(cls, fields: dict[str, Any], topic: str = "") -> Self:
        """Remove the position's fields from a decoded state record and return them; raises KeyError if one is absent."""
        return cls(
            partition=fields.pop(SOURCE_PARTITION.name),
            offset=fields.pop(SOURCE_OFFSET.name),
            event_count=fields.pop(EVENT_COUNT.name),
            topic=topic,
        )

    @classmethod
    def of_removal(
        cls, headers: Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]] | None
    ) -> Self | None:
        """Return the position in the headers of a removal; None for a record without such headers."""
        texts = dict(headers or {})
        try:
            event_count, partition, offset = (int(texts[name] or "") for name in REMOVAL_HEADERS)
        except (KeyError, ValueError):
            return None
        return cls(partition, offset, event_count)

    def removal_headers(self) -> list[tuple[str, str | bytes | None]]:
        """Return the position as the headers of a removal; the inverse of `of_removal`."""
        fields = self.record_fields()
        return [(name, str(fields[name])) for name in REMOVAL_HEADERS]

    def record_fields(self) -> dict[str, int]:
        """Return the position as fields of a state record, in the record's order."""
        return {
            EVENT_COUNT.name: self.event_count,
            SOURCE_PARTITION.name: self.partition,
            SOURCE_OFFSET.name: self.offset,
        }

    def covers(self, other: "Position") -> bool:
        """Return whether a record at this position contains the event at the other one; False for another partition or topic."""
        return self._is_comparable(other) and self.offset >= other.offset

    def merge(self, other: "Position") -> "Position":
        """Return the later of two positions of a key; raises ValueError if their partitions or topics differ."""
        if not self._is_comparable(other):
            message = f"{self} and {other} are in different partitions or topics and cannot be merged."
            raise ValueError(message)
        return other if other.offset > self.offset else self

    def _is_comparable(self, other: "Position") -> bool:
        same_topic = not (self.topic and other.topic) or self.topic == other.topic
        return same_topic and self.partition == other.partition

    def __str__(self) -> str:
        """Return the text form: `partition=3, offset=39928, event_count=50`, preceded by `topic=...` if known."""
        topic = f"topic={self.topic}, " if self.topic else ""
        if not self.event_count:
            return f"{topic}partition={self.partition}, offset={self.offset}"
        return topic + _TEXT % (self.partition, self.offset, self.event_count)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form; raises ValueError."""
        parts = dict(part.split("=", 1) for part in text.split(", ") if "=" in part)
        try:
            partition, offset = parse_offset(parts.pop("partition")), parse_offset(parts.pop("offset"))
            event_count = parse_offset(parts.pop("event_count", "0"))
        except (KeyError, ValueError) as error:
            raise ValueError(_not_a_position(text)) from error
        topic = parts.pop("topic", "")
        if parts:
            raise ValueError(_not_a_position(text))
        return cls(partition, offset, event_count, topic)


def supersedes(event_count: int, known: int, *, is_known_removed: bool = False) -> bool:
    """Return whether a state record replaces what is known of its key, given how many events are folded into each.

    After a crash, the driver repeats records: an older one may follow a newer one, and an equal one replaces itself. A record that has
    no more events than its key's removal was written before it. A removal always applies. Every reader of a changelog follows this rule,
    also those that cannot call this function: the lake's merge and the script of the Redis store.
    """
    return event_count > known if is_known_removed else event_count >= known


def position_text(fields: Mapping[str, Any]) -> str:
    """Return the text form of a decoded record's position. Every lookup calls it, so it creates no `Position`."""
    text: str = _TEXT % text_values(fields)
    return text


def parse_offset(text: str) -> int:
    """Read an offset, a whole number of 19 digits at most; raises ValueError."""
    if not OFFSET_TEXT.fullmatch(text):
        message = f"{text[:40]!r} is not an offset: give a whole number, 0 or more."
        raise ValueError(message)
    return int(text)


def _not_a_position(text: str) -> str:
    return f"{text[:100]!r} is not a position: its form is `partition=3, offset=39928, event_count=50`."


class Offsets(dict[int, int]):
    """How far a whole topic has been read: partition -> offset of the first unread record; 0 for a partition not given.

    Used for a topic's end offsets, a check's cut, and the offsets up to which a table or a node's store is complete. A value
    object: create another one instead of changing it. It is a dictionary so that JSON, Spark and Delta's tags accept it
    unconverted.
    """

    @classmethod
    def of_ends(cls, ends: Iterable[int]) -> Self:
        """Return the offsets for a sequence of end offsets, of partition 0, 1, and so on."""
        return cls(enumerate(ends))

    @classmethod
    def from_json(cls, by_partition: Mapping[str, int]) -> Self:
        """Return the offsets of a JSON object, whose partitions are strings; raises ValueError or AttributeError."""
        return cls({int(partition): offset for partition, offset in by_partition.items()})

    @classmethod
    def of_newest(cls, newest: Mapping[int, int]) -> Self:
        """Return the offsets after these newest records: partition -> offset of the newest record that has been read."""
        return cls({partition: offset + 1 for partition, offset in newest.items()})

    @classmethod
    def from_newest_json(cls, newest: Mapping[str, int]) -> Self:
        """Return the offsets after the newest records of a JSON object, whose partitions are strings; errors as `from_json`."""
        return cls.of_newest(cls.from_json(newest))

    def newest(self) -> dict[int, int]:
        """Return the offset of the newest record that has been read of each partition; the inverse of `of_newest`."""
        return {partition: offset - 1 for partition, offset in self.items()}

    def for_spark(self, topic: str) -> str:
        """Return the offsets in the format of Spark's Kafka source: JSON by topic and partition."""
        return json.dumps({topic: {str(partition): offset for partition, offset in self.items()}})

    def of(self, partition: int) -> int:
        """Return the offset of a partition."""
        return self.get(partition, 0)

    def merge(self, other: Mapping[int, int]) -> "Offsets":
        """Return the higher offset of each partition."""
        partitions = sorted(self.keys() | other.keys())
        return Offsets({p: max(self.of(p), other.get(p, 0)) for p in partitions})

    def covers(self, ends: Mapping[int, int]) -> bool:
        """Return whether everything below these end offsets has been read."""
        return all(self.of(partition) >= end for partition, end in ends.items())

    def with_event(self, event: Position) -> "Offsets":
        """Return the offsets after the event's partition has been read up to and including this event."""
        return self.merge({event.partition: event.offset + 1})

    def events_until(self, ends: Mapping[int, int]) -> int:
        """Return the number of events between these offsets and the end offsets."""
        return sum(max(0, end - self.of(partition)) for partition, end in ends.items())
