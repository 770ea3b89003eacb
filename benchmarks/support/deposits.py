"""Pre-serialized deposits, which are cheap to produce, and the exact result of folding them."""

import io
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
from confluent_kafka import Message, Producer

from include.declarations.load import read_model
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import decode_state_record
from include.kafka.topics import admin_client, ensure_topics, partition_count
from include.kafka.wire_format import header
from include.read_models.balance.events import FundsAdded
from include.settings import KafkaConnection, Settings

BALANCE = read_model("balance")
CHANGELOG = "balance.v1.changelog"


class Deposits:
    """One pre-serialized deposit per customer, which is appended repeatedly."""

    def __init__(self, settings: Settings, customers: int, prefix: str = "customer-") -> None:
        admin = admin_client(settings.kafka_connection)
        ensure_topics(admin, BALANCE.source_topics(settings.topics), settings.topics.replication_factor)
        schema = FundsAdded.schema
        schema_id = SchemaRegistry(settings.registry.connection).register(BALANCE.source_topic, schema)
        parsed = fastavro.parse_schema(schema.parsed())
        self.amounts = [Decimal(1 + number % 9_999) / 100 for number in range(customers)]
        self.keys = [f"{prefix}{number}".encode() for number in range(customers)]
        self.values = []
        for number, key in enumerate(self.keys):
            buffer = io.BytesIO(header(schema_id))
            buffer.seek(0, io.SEEK_END)
            event = {"id": f"deposit-{number}", "occurredOn": datetime.now(UTC), "customerId": key.decode()}
            fastavro.schemaless_writer(buffer, parsed, event | {"amount": self.amounts[number]})
            self.values.append(buffer.getvalue())
        self.appended: Counter[int] = Counter()

    def append_many(self, settings: Settings, events: int, seed: int) -> float:
        """Append `events` deposits of random customers as fast as possible, and return the duration in seconds."""
        producer = Producer(
            {
                **settings.kafka_connection.client_settings,
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        chosen = random.Random(seed).choices(range(len(self.keys)), k=events)
        started_s = time.monotonic()
        for index, number in enumerate(chosen):
            while True:
                try:
                    producer.produce(BALANCE.source_topic, key=self.keys[number], value=self.values[number])
                except BufferError:
                    producer.poll(0.5)
                else:
                    break
            if index % 1000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0
        self.appended.update(chosen)
        return time.monotonic() - started_s

    def append_each(self, settings: Settings, numbers: Iterable[int]) -> None:
        """Append one deposit of each of these customers."""
        producer = low_latency_producer(settings.kafka_connection)
        for number in numbers:
            producer.produce(BALANCE.source_topic, key=self.keys[number], value=self.values[number])
            producer.poll(0)
            self.appended[number] += 1
        assert producer.flush(60) == 0

    def expected(self) -> dict[str, tuple[int, Decimal]]:
        """Return customer -> (number of deposits, balance) of all appended deposits."""
        return {
            self.keys[number].decode(): (count, count * self.amounts[number])
            for number, count in self.appended.items()
        }


def low_latency_producer(kafka: KafkaConnection) -> Producer:
    """Return a producer that sends each record immediately, with the Java client's partitioner."""
    return Producer(
        {
            **kafka.client_settings,
            "partitioner": "murmur2_random",
            "linger.ms": 0,
            "acks": "all",
            # A benchmark's last clients outlive its broker.
            "log_level": 0,
        }
    )


def changelog_messages(settings: Settings, topic: str = CHANGELOG) -> Iterator[Message]:
    """Yield every record of a changelog."""
    consumer = log_consumer(settings.kafka_connection)
    partitions = partition_count(admin_client(settings.kafka_connection), topic) or 0
    for partition in range(partitions):
        yield from read_tail(consumer, topic, partition)
    consumer.close()


def folded(settings: Settings, topic: str = CHANGELOG) -> tuple[dict[str, tuple[int, Decimal]], float]:
    """Return customer -> (event_count, amount) in a changelog, and the Unix time of its last record in seconds."""
    newest: dict[str, tuple[int, Decimal]] = {}
    written_at_s = 0.0
    for message in changelog_messages(settings, topic):
        value, key = message.value(), message.key()
        if value is None or not isinstance(key, bytes):
            continue
        record = decode_state_record(value, lambda _id: BALANCE.state_schema)
        name = key.decode()
        if name not in newest or newest[name][0] <= record.event_count:
            newest[name] = (record.event_count, record.state["amount"])
        written_at_s = max(written_at_s, message.timestamp()[1] / 1000)
    return newest, written_at_s
