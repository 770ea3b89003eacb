"""Dead letters: what cannot be decoded goes to `<topic>.dead-letter`, each record once.

The query is apart from the folds and runs in micro-batches. A batch that is run again writes nothing twice: dead letters
of source partition p go to partition p in order of offset, so its last one says up to where they are written.
"""

import logging
import time

from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row

from include.errors import KafkaUnavailableError
from include.kafka_log import log_consumer, read_tail
from include.topics import dead_letter_topic

LOG = logging.getLogger(__name__)
FLUSH_TIMEOUT_S = 60.0
SOURCE_OFFSET_HEADER = "source_offset"


class DeadLetterWriter:
    """Writes the dead letters of one source topic. One writer at a time: the driver's lock sees to that.

    Raises KafkaUnavailableError from the constructor and `write` when the broker does not answer; the batch is run again then.
    """

    def __init__(self, bootstrap_servers: str, source_topic: str, partitions: int) -> None:
        self._source_topic = source_topic
        self._topic = dead_letter_topic(source_topic)
        self._newest = _newest_offsets(bootstrap_servers, self._topic, partitions)
        self.written = 0
        self._failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 20,
                "message.timeout.ms": int(FLUSH_TIMEOUT_S * 1000),
                "log_level": 3,
            }
        )

    def write(self, letters: DataFrame, batch_id: int) -> None:
        """Write the letters of one batch (columns key, value, partition, offset, reason), and wait for the broker."""
        self._failures.clear()
        count = 0
        for row in letters.orderBy("partition", "offset").toLocalIterator():
            if row.offset > self._newest.get(row.partition, -1):
                self._produce(row)
                count += 1
        remaining = self._producer.flush(FLUSH_TIMEOUT_S)
        if remaining or self._failures:
            # What did reach the broker is found by reading the topic's end again when the query is restarted.
            message = (
                f"{remaining + len(self._failures)} dead letters were not acknowledged: {self._failures[:1]}"
            )
            raise KafkaUnavailableError(message)
        self.written += count
        if count:
            LOG.warning("%d records of %s are dead letters (batch %d)", count, self._source_topic, batch_id)

    def _produce(self, row: Row) -> None:
        headers = [
            ("reason", row.reason.encode()),
            ("source_topic", self._source_topic.encode()),
            ("source_partition", str(row.partition).encode()),
            (SOURCE_OFFSET_HEADER, str(row.offset).encode()),
        ]
        key = None if row.key is None else bytes(row.key)
        value = None if row.value is None else bytes(row.value)
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition=row.partition,
                    headers=headers,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.5)
            else:
                break
        self._producer.poll(0)
        self._newest[row.partition] = row.offset

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._failures.append(str(error))


def _newest_offsets(bootstrap_servers: str, topic: str, partitions: int) -> dict[int, int]:
    """Return source partition -> source offset of its newest dead letter."""
    consumer = log_consumer(bootstrap_servers)
    newest: dict[int, int] = {}
    started_s = time.monotonic()
    for partition in range(partitions):
        for message in read_tail(consumer, topic, partition, records=1):
            headers = dict(message.headers() or [])
            newest[partition] = int(headers[SOURCE_OFFSET_HEADER] or -1)
    consumer.close()
    LOG.info("read the ends of %s in %.1f s", topic, time.monotonic() - started_s)
    return newest
