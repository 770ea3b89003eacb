"""Reads the events of a read model from its source topic as Arrow batches, without Spark."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicPartition

from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import READ_TIMEOUT_S, log_consumer, log_consumer_settings, offset_bounds_of
from include.kafka.schema_ids import known_schema_ids
from include.position import Offsets
from include.replay.batch_decoding import BatchDecoder, Records, batch_schema
from include.replay.decoding import RecordDecoder, UnknownSchemaIdError
from include.settings import Settings

MICROS_PER_MILLI = 1000
LOG = logging.getLogger(__name__)
# At most, of one call of the consumer and of one batch; and from how many bytes of values on a batch is complete.
FETCHED_RECORDS, BATCH_RECORDS, BATCH_BYTES = 1_000, 50_000, 2**26
# What a fetch for a single record asks for.
FETCHED_BYTES_OF_ONE = 8_192


def event_schema(model: ReadModel) -> pa.Schema:
    """Return the columns of a read model's events, by their internal names (event_columns.py).

    They are those of the record: key, partition, offset, time in Kafka and event type; and the struct of each event type, in the order
    of `model.event_types`, null for an event of another type.
    """
    return batch_schema(model.events.readers)


def event_batches(
    settings: Settings,
    model: ReadModel,
    since: Offsets | None,
    until: Offsets,
    *,
    partitions: Collection[int] | None = None,
    record_key: bytes | None = None,
    on_read: Callable[[int], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """Yield the events of a read model with the columns of `event_schema`: see `topic_batches`.

    model: the read model, with the start of the version (`ReadModel.reading`), below which no offset is read.
    since: the offset to start at in each partition; None: the first one.
    """
    start = model.starts.merge(since or {})
    return topic_batches(
        settings,
        model.events,
        start,
        until,
        partitions=partitions,
        record_key=record_key,
        on_read=on_read,
    )


def topic_batches(
    settings: Settings,
    events: TopicEvents,
    since: Offsets,
    until: Offsets,
    *,
    partitions: Collection[int] | None = None,
    record_key: bytes | None = None,
    on_read: Callable[[int], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """Yield the events of a topic that can be decoded, in the order of each partition.

    Partitions are mixed. No batch is empty, or has more than BATCH_RECORDS events. The rule that a re-keyed topic has for the keys of its
    records (`events.record_key`) is left to the caller, since it is an expression.

    Args:
        settings: of Kafka and the registry.
        events: the topic, and the event types that are decoded.
        since: the offset to start at in each partition. Records that the log no longer has are absent.
        until: the end offset of each partition of the topic.
        partitions: those to read; None: all.
        record_key: decode only records with this key; None: all.
        on_read: called with the number of records that were read since its last call, whether they are decoded or not.

    Raises:
        KafkaUnavailableError: the brokers do not respond in time.
        RegistryUnavailableError: the schema registry does not.
    """
    decode = _TopicDecoder(settings, events, len(until))
    with closing(log_consumer(settings.kafka_connection)) as consumer:
        ranges = {
            partition: (max(low, since.of(partition)), end)
            for partition, end in until.items()
            if (partitions is None or partition in partitions) and since.of(partition) < end
            for low, _ in (offset_bounds_of(consumer, events.topic, partition),)
        }
        for records in record_batches(consumer, events.topic, ranges, record_key, on_read):
            batch = decode.batch(records)
            if batch.num_rows:
                yield batch


def events_at(
    settings: Settings, events: TopicEvents, ends: Offsets, positions: Mapping[int, Sequence[int]]
) -> Iterator[pa.RecordBatch]:
    """Yield the events at these offsets of partitions, as far as the log still has them and they can be decoded.

    ends: of all partitions of the topic. positions: partition -> offsets. Errors as those of `topic_batches`.
    """
    if not positions:
        return
    decode = _TopicDecoder(settings, events, len(ends))
    consumer_settings = log_consumer_settings(settings.kafka_connection)
    # A broker returns a larger batch of records, too, if it is the first one: no more is needed here.
    consumer_settings["max.partition.fetch.bytes"] = FETCHED_BYTES_OF_ONE
    found = Records()
    with closing(Consumer(consumer_settings)) as consumer:
        bounds = {p: offset_bounds_of(consumer, events.topic, p) for p in positions}
        kept = {
            p: [offset for offset in offsets if bounds[p][0] <= offset < bounds[p][1]]
            for p, offsets in positions.items()
        }
        for number in range(max(map(len, kept.values()), default=0)):
            ranges = {
                p: (offsets[number], offsets[number] + 1)
                for p, offsets in kept.items()
                if number < len(offsets)
            }
            for records in record_batches(consumer, events.topic, ranges):
                found.extend(records)
                if found.value_bytes > BATCH_BYTES:
                    yield decode.batch(found)
                    found = Records()
    if found:
        yield decode.batch(found)


class _TopicDecoder:
    """Decodes the records of a topic; looks up schema ids that it does not know."""

    def __init__(self, settings: Settings, events: TopicEvents, partitions: int) -> None:
        self._settings = settings
        self._events = events
        self._partitions = partitions
        self._looked_up: set[int] = set()
        self._decoder: BatchDecoder | None = None

    def batch(self, records: Records) -> pa.RecordBatch:
        """Return the events among the records."""
        while True:
            self._decoder = self._decoder or self._new_decoder()
            try:
                return self._decoder.decode(records)
            except UnknownSchemaIdError as error:
                LOG.info("looking up schema id %d, which is of another subject, or of none", error.schema_id)
                self._looked_up.add(error.schema_id)
                self._decoder = None

    def _new_decoder(self) -> BatchDecoder:
        readers = self._events.readers
        ids = known_schema_ids(self._settings, self._events.topic, self._looked_up)
        return BatchDecoder(readers, RecordDecoder.of(readers, ids, self._partitions))


def record_batches(
    consumer: Consumer,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    record_key: bytes | None = None,
    on_read: Callable[[int], None] = lambda _: None,
) -> Iterator[Records]:
    """Yield the records of a range of offsets in each partition: from the first one up to the one before the second one."""
    found = Records()
    ranges = {partition: bounds for partition, bounds in ranges.items() if bounds[0] < bounds[1]}
    for messages in _fetched(consumer, topic, ranges):
        chosen = messages if record_key is None else [one for one in messages if one.key() == record_key]
        found.keys += [one.key() for one in chosen]
        found.values += [one.value() for one in chosen]
        found.partitions.extend([one.partition() or 0 for one in chosen])
        found.offsets.extend([one.offset() or 0 for one in chosen])
        found.times.extend([one.timestamp()[1] * MICROS_PER_MILLI for one in chosen])
        # Of a message: of its value.
        found.value_bytes += sum(map(len, chosen))
        on_read(len(messages))
        if len(found) > BATCH_RECORDS - FETCHED_RECORDS or found.value_bytes > BATCH_BYTES:
            yield found
            found = Records()
    if found:
        yield found


def _fetched(
    consumer: Consumer, topic: str, ranges: Mapping[int, tuple[int, int]]
) -> Iterator[list[Message]]:
    """Yield the committed records of these ranges as the consumer fetches them; errors as those of `log_reading.read_tail`."""
    consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in ranges.items()])
    ends = {partition: end for partition, (_, end) in ranges.items()}
    while ends:
        first = consumer.poll(READ_TIMEOUT_S)
        if first is None:
            raise KafkaUnavailableError(
                f"Reading {topic} stopped: no record within {READ_TIMEOUT_S:.0f} s. Hint: check that the brokers are up."
            )
        found: list[Message] = []
        ended: set[int] = set()
        for message in (first, *consumer.consume(FETCHED_RECORDS - 1, 0)):
            error = message.error()
            if error is not None and error.name() != "_PARTITION_EOF":
                if not error.retriable():
                    raise KafkaUnavailableError(f"Cannot read {topic}/{message.partition()}: {error}")
                continue
            partition, offset = message.partition(), message.offset()
            if partition not in ends or offset is None:
                continue
            if error is None and offset < ends[partition]:
                found.append(message)
            # Control records, which end transactions, have offsets, too: the last offset before the end need not be that of a record.
            if error is not None or offset >= ends[partition] - 1:
                ended.add(partition)
        for partition in ended:
            del ends[partition]
            consumer.incremental_unassign([TopicPartition(topic, partition)])
        yield found
