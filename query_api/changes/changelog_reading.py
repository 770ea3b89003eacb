"""Reads all partitions of a changelog from a position on."""

from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import offset_bounds
from query_api.materializer.changelog_consumer import changelog_consumer

POLL_S = 0.25
# A stream sends the changes of a batch as one part, and a client that does not read leaves some such parts in memory.
BATCH_RECORDS = 200
CLIENT_ID = "foldlake-changes"
# After these errors the topic is not the one that was read before, or no longer has the offset.
LOST = {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION"}


class ChangelogLostError(Exception):
    """The changelog was removed, or no longer has the records that come next."""


class ChangelogReading:
    """Reads messages in the order of their offsets within each partition. One thread uses it.

    offsets: of each partition, the next one to read.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.offsets: list[int] = [0] * partitions
        self._consumer: Consumer = changelog_consumer(bootstrap_servers, CLIENT_ID)

    def bounds(self) -> tuple[tuple[int, int], ...]:
        """Return the first offset that each partition still has, and its end offset; raises KafkaUnavailableError."""
        return offset_bounds(self._consumer, self.topic, len(self.offsets))

    def begin(self, offsets: Sequence[int]) -> None:
        """Read from these offsets on; raises KafkaUnavailableError."""
        self.offsets = list(offsets)
        try:
            self._consumer.assign([TopicPartition(self.topic, p, o) for p, o in enumerate(offsets)])
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot read {self.topic}: {error}") from error

    def messages(self) -> Iterator[Message]:
        """Yield what has arrived, or wait briefly for it; `offsets` are those after each message. Raises ChangelogLostError."""
        first = self._consumer.poll(POLL_S)
        if first is None:
            return
        for message in (first, *self._consumer.consume(BATCH_RECORDS - 1, timeout=0)):
            partition, offset, error = message.partition(), message.offset(), message.error()
            if error is not None and error.name() in LOST:
                raise ChangelogLostError(f"{self.topic}: {error.str()}")
            if partition is None or partition < 0 or offset is None or offset < self.offsets[partition]:
                continue  # an error of a broker, after which the client tries again by itself
            if error is None:
                self.offsets[partition] = offset + 1
                yield message
            elif error.name() == "_PARTITION_EOF":
                self.offsets[partition] = offset

    def close(self) -> None:
        """End reading."""
        self._consumer.close()
