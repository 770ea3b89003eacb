"""How far a version is folded that a rebuild builds, measured on its changelog."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.declarations.read_model import ReadModel
from include.kafka.log_reading import end_offsets, read_tail
from include.kafka.state_record import decode_state_record
from include.kafka.topics import partition_count
from include.position import Offsets, Position
from include.versions.version_record import Version

# Enough to include the newest record of every source partition in most cases.
TAIL_RECORDS = 300


@dataclass(frozen=True)
class BuildProgress:
    """Events of the log that a version folds in all, and how many of them it has folded. Folded events are counted by offset."""

    folded_events: int
    events: int


def build_progress(
    model: ReadModel, version: Version, admin: AdminClient, consumer: Consumer
) -> BuildProgress | None:
    """Return how far a version is folded; None while its source does not exist. Raises KafkaUnavailableError."""
    reading = model.reading(version.source_topic, version.starts)
    partitions = partition_count(admin, reading.source_topic)
    if partitions is None:
        return None
    changelog_partitions = partition_count(admin, version.changelog_topic) or 0
    schema = model.state_schema_of(version.fold_revision)
    newest: dict[int, int] = {}
    tails = (
        read_tail(consumer, version.changelog_topic, p, TAIL_RECORDS) for p in range(changelog_partitions)
    )
    for message in chain.from_iterable(tails):
        value = message.value()
        position = (
            Position.of_removal(message.headers())
            if value is None
            else decode_state_record(value, lambda _id: schema).position
        )
        if position is not None:
            newest[position.partition] = max(position.offset, newest.get(position.partition, 0))
    ends = Offsets.of_ends(end_offsets(consumer, reading.source_topic, partitions))
    total = version.starts.events_until(ends)
    return BuildProgress(total - _left(newest, version.starts, ends), total)


def _left(newest: Mapping[int, int], starts: Offsets, ends: Offsets) -> int:
    return Offsets.of_newest(dict(newest)).merge(starts).events_until(ends)
