"""Writes the records of a tick, all of them or none: each tick is a Kafka transaction.

A driver that is killed while it writes a tick leaves an open transaction, which its successor aborts before it reads which tick is the
newest: consumers that read committed records get each tick whole, and once, or not at all. The transaction also keeps out a predecessor
that still runs: Kafka refuses what it sends from then on.
"""

from collections.abc import Iterable

from confluent_kafka import KafkaException, Producer

from include.errors import KafkaUnavailableError
from include.kafka.dead_letters import ROUTE_HEADER
from include.kafka.written_ticks import TICK_HEADER

TRANSACTION_TIMEOUT_S = 60.0


class TickWriter:
    """Writes to the topic of one periodic emission; excludes every earlier writer. Raises KafkaUnavailableError.

    name: of the periodic emission.
    """

    def __init__(self, bootstrap_servers: str, name: str, topic: str) -> None:
        self._name = name
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "transactional.id": f"foldlake-periodic-{name}",
                "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "compression.type": "lz4",
                "log_level": 3,
            }
        )
        try:
            self._producer.init_transactions(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot start to write {topic}: {error}") from error

    def write(self, tick_ms: int, version: int, records: Iterable[tuple[bytes, bytes]]) -> int:
        """Write the records of a tick, given as keys and values; return their number. version: that of the read model.

        Raises KafkaUnavailableError when the tick could not be written: create another writer then.
        """
        headers = [
            (ROUTE_HEADER, self._name.encode()),
            (TICK_HEADER, str(tick_ms).encode()),
            ("version", str(version).encode()),
        ]
        written = 0
        try:
            self._producer.begin_transaction()
            for key, value in records:
                self._produce(key, value, headers)
                written += 1
            self._producer.commit_transaction(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            raise KafkaUnavailableError(
                f"Tick {tick_ms} was not written to {self._topic}: {error}"
            ) from error
        return written

    def _produce(self, key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, key, headers=list(headers))
            except BufferError:
                # The producer's queue is full: wait for delivery reports.
                self._producer.poll(0.5)
            else:
                self._producer.poll(0)
                return
