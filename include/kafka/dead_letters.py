"""Dead letters: their headers, how far each source partition has them, and the newest ones of a source topic."""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from confluent_kafka import Consumer, Message

from include.kafka.log_reading import end_offsets, log_consumer, newest_record, read_tail
from include.kafka.topics import admin_client, dead_letter_topic, partition_count
from include.position import Offsets, Position, parse_offset
from include.settings import KafkaConnection

# The headers of a dead letter. Four exist only if it is a reference: its key or value is too large for the topic.
REASON_HEADER = "reason"
SOURCE_TOPIC_HEADER = "source_topic"
SOURCE_PARTITION_HEADER = "source_partition"
SOURCE_OFFSET_HEADER = "source_offset"
KEY_BYTES_HEADER = "key_bytes"
KEY_SHA256_HEADER = "key_sha256"
VALUE_BYTES_HEADER = "value_bytes"
VALUE_SHA256_HEADER = "value_sha256"
# Which route or emission wrote a record: only an emission writes dead letters itself.
ROUTE_HEADER = "route"
# Which declarations fail for the event, and which of their expressions.
FAILURE_HEADER = "failure"
# The reason shown for a record that another program wrote to the topic.
FOREIGN = "not_a_dead_letter"
# How many records of a partition are searched for its newest dead letter; further ones are of another program.
SEARCHED_RECORDS = 10_000


@dataclass(frozen=True)
class RecordDigest:
    """Size and SHA-256 (hexadecimal) of a key or value that a reference does not contain."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class DeadLetter:
    """A source record that could not be decoded, with unchanged key and value; `written_at` is the dead letter's time.

    key_digest, value_digest: in place of a key or value that is too large for the topic, which is then None here.
    failure: which declarations fail for the event, and which of their expressions, if that is the reason.
    source_partition, source_offset: -1 for a record of another program, whose reason is FOREIGN.
    """

    written_at: datetime
    reason: str
    source_topic: str
    source_partition: int
    source_offset: int
    key: bytes | None
    value: bytes | None
    key_digest: RecordDigest | None = None
    value_digest: RecordDigest | None = None
    failure: str = ""

    @classmethod
    def from_message(cls, message: Message) -> "DeadLetter":
        """Convert a record of a dead-letter topic."""
        headers = _headers(message)
        source = _source(headers)
        return cls(
            written_at=datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
            reason=FOREIGN if source is None else headers[REASON_HEADER].decode(errors="replace"),
            source_topic="" if source is None else source.topic,
            source_partition=-1 if source is None else source.partition,
            source_offset=-1 if source is None else source.offset,
            key=message.key(),
            value=message.value(),
            key_digest=_digest(headers, KEY_BYTES_HEADER, KEY_SHA256_HEADER),
            value_digest=_digest(headers, VALUE_BYTES_HEADER, VALUE_SHA256_HEADER),
            failure=headers.get(FAILURE_HEADER, b"").decode(errors="replace"),
        )


def source_position(message: Message) -> Position | None:
    """Return the position of the source record of a dead letter; None for a record of another program."""
    return _source(_headers(message))


def newest_dead_letter(consumer: Consumer, source_topic: str, partition: int) -> Position | None:
    """Return the position of the source record of a source partition's newest dead letter; None if there is none.

    Looks past records of other programs, up to SEARCHED_RECORDS. Raises KafkaUnavailableError.
    """

    def is_of_partition(message: Message) -> bool:
        headers = _headers(message)
        source = _source(headers)
        # An emission writes the dead letters of its own expressions, later than the records beside them.
        is_of_emission = ROUTE_HEADER in headers
        return (
            source is not None
            and not is_of_emission
            and (source.topic, source.partition) == (source_topic, partition)
        )

    found = newest_record(
        consumer, dead_letter_topic(source_topic), partition, is_of_partition, SEARCHED_RECORDS
    )
    return None if found is None else source_position(found)


def newest_dead_letters(consumer: Consumer, source_topic: str, partitions: int) -> Offsets:
    """Return source partition -> the offset after its newest dead letter; 0 for a partition without one.

    Raises KafkaUnavailableError.
    """
    found = (newest_dead_letter(consumer, source_topic, partition) for partition in range(partitions))
    return Offsets.of_newest(
        {position.partition: position.offset for position in found if position is not None}
    )


def _headers(message: Message) -> dict[str, bytes]:
    pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return {name: value for name, value in pairs if value is not None}


def _source(headers: Mapping[str, bytes]) -> Position | None:
    if REASON_HEADER not in headers:
        return None
    try:
        topic = headers[SOURCE_TOPIC_HEADER].decode()
        partition = parse_offset(headers[SOURCE_PARTITION_HEADER].decode())
        offset = parse_offset(headers[SOURCE_OFFSET_HEADER].decode())
    except (KeyError, ValueError):
        return None
    return Position(partition, offset, topic=topic)


def _digest(headers: Mapping[str, bytes], size: str, sha256: str) -> RecordDigest | None:
    try:
        return RecordDigest(parse_offset(headers[size].decode()), headers[sha256].decode())
    except (KeyError, ValueError):
        return None


@dataclass(frozen=True)
class DeadLetters:
    """The newest dead letters of one source topic, oldest first, and their total number."""

    source_topic: str
    total: int
    newest: tuple[DeadLetter, ...]

    def by_reason(self) -> dict[str, int]:
        """Return reason -> number of records in `newest`, the most frequent reason first."""
        return dict(Counter(record.reason for record in self.newest).most_common())


def read_dead_letters(kafka: KafkaConnection, source_topic: str, limit: int) -> DeadLetters | None:
    """Return the newest `limit` dead letters of a source topic, or None when it has no dead-letter topic.

    Raises KafkaUnavailableError when no broker responds.
    """
    topic = dead_letter_topic(source_topic)
    admin = admin_client(kafka)
    partitions = partition_count(admin, topic)
    if partitions is None:
        return None
    with closing(log_consumer(kafka)) as consumer:
        # The writer uses no transactions, so an end offset is the number of records written.
        total = sum(end_offsets(consumer, topic, partitions))
        records = [
            DeadLetter.from_message(message)
            for partition in range(partitions)
            for message in read_tail(consumer, topic, partition, records=limit)
        ]
    records.sort(key=lambda record: (record.written_at, record.source_partition, record.source_offset))
    return DeadLetters(source_topic, total, tuple(records[-limit:]))
