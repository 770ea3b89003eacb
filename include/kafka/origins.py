"""The origin of a record that a route wrote: the source record that it was made of, in the record's headers.

A route writes its outputs of one source partition into one output partition in the order of their origins. The newest origin of such a
pair of partitions therefore says which outputs have been written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from confluent_kafka import Consumer, Message

from include.kafka.dead_letters import SOURCE_OFFSET_HEADER, SOURCE_PARTITION_HEADER, SOURCE_TOPIC_HEADER
from include.kafka.log_reading import end_offsets, read_tail
from include.position import Offsets, parse_offset

ROUTE_HEADER = "route"
SOURCE_INDEX_HEADER = "source_index"
HEADERS = (
    ROUTE_HEADER,
    SOURCE_TOPIC_HEADER,
    SOURCE_PARTITION_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_INDEX_HEADER,
)


@dataclass(frozen=True, order=True, slots=True)
class Origin:
    """The offset of a source record, and the index of an output among those of this record, from 0."""

    offset: int
    index: int


class Pair(NamedTuple):
    """A source partition and an output partition."""

    source: int
    output: int


@dataclass(frozen=True)
class RouteRecords:
    """Which records of an output topic a route wrote from a source topic."""

    route: str
    source_topic: str

    def origin(self, message: Message) -> tuple[int, Origin] | None:
        """Return source partition and origin of a record; None if this route did not write it."""
        found = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
        try:
            route, topic, partition, offset, index = ((found[name] or b"").decode() for name in HEADERS)
            if (route, topic) != (self.route, self.source_topic):
                return None
            return parse_offset(partition), Origin(parse_offset(offset), parse_offset(index))
        except (KeyError, ValueError):
            return None


def merge_origins(first: Mapping[Pair, Origin], second: Mapping[Pair, Origin]) -> dict[Pair, Origin]:
    """Return the newer origin of each pair."""
    merged = dict(first)
    for pair, origin in second.items():
        merged[pair] = max(origin, merged.get(pair, origin))
    return merged


def read_origins(
    consumer: Consumer, topic: str, partitions: int, since: Offsets, records: RouteRecords
) -> dict[Pair, Origin]:
    """Return the newest origin of each pair among a route's records in a topic, from these offsets to its end.

    Raises KafkaUnavailableError.
    """
    newest: dict[Pair, Origin] = {}
    for output, end in enumerate(end_offsets(consumer, topic, partitions)):
        unread = end - since.of(output)
        for message in read_tail(consumer, topic, output, unread) if unread > 0 else ():
            found = records.origin(message)
            if found is not None:
                pair = Pair(found[0], output)
                newest[pair] = max(found[1], newest.get(pair, found[1]))
    return newest
