"""What `FOLDLAKE_FLUSH_MESSAGES=1` costs: acknowledgements of single events, and of many, with and without a sync of each write.

The turns alternate between the two topics, so that other load on the machine affects both. The disk determines the result: that of
the temporary directory (`TMPDIR`).
"""

import argparse
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.support.report import latency_line, print_environment
from include.kafka.topics import admin_client, ensure_topics, source_topics
from include.settings import Settings
from tests.support.temporary_stack import temporary_stack

PARTITIONS = 4
# topic -> flush.messages
TOPICS = {"not-synced": 0, "synced": 1}
VALUE = bytes(120)
TIMEOUT_S = 300.0


class Writer:
    """Writes to one topic as a query node does, and counts what the broker has acknowledged."""

    def __init__(self, settings: Settings, topic: str) -> None:
        """Connect; nothing is sent yet."""
        self.topic = topic
        self.acknowledged = 0
        self.waits_ms: list[float] = []
        self.rates: list[float] = []
        self._kafka = settings.kafka_connection
        self._producer = Producer(
            {
                **self._kafka.client_settings,
                "enable.idempotence": True,
                "linger.ms": 0,
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    def write_one_by_one(self, count: int) -> None:
        """Write events, each after the acknowledgement of the one before."""
        for number in range(count):
            sent_s = time.perf_counter()
            self._send(number)
            self._flush()
            self.waits_ms.append((time.perf_counter() - sent_s) * 1000)

    def write_many(self, count: int) -> None:
        """Write events without waiting for acknowledgements, except at the end."""
        sent_s = time.perf_counter()
        for number in range(count):
            self._send(number)
            self._producer.poll(0)
        self._flush()
        self.rates.append(count / (time.perf_counter() - sent_s))

    def count_on_log(self) -> int:
        """Return how many records the topic has."""
        consumer = Consumer({**self._kafka.client_settings, "group.id": "flush-benchmark"})
        ends = [
            consumer.get_watermark_offsets(TopicPartition(self.topic, partition))[1]
            for partition in range(PARTITIONS)
        ]
        consumer.close()
        return sum(ends)

    def _send(self, number: int) -> None:
        self._producer.produce(self.topic, VALUE, b"customer %d" % number, on_delivery=self._count)

    def _count(self, error: object, _: object) -> None:
        assert error is None, error
        self.acknowledged += 1

    def _flush(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0, "the broker has not acknowledged everything"


def main() -> None:
    """Write to both topics in turns, and compare."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--turns", type=int, default=5, help="turns for each topic (5)")
    arguments.add_argument("--single", type=int, default=1_000, help="events a turn, one by one (1,000)")
    arguments.add_argument(
        "--many", type=int, default=100_000, help="events a turn, without waiting (100,000)"
    )
    options = arguments.parse_args()
    with temporary_stack(("kafka",)) as settings:
        print_environment(settings)
        print(f"disk      {file_system(Path(tempfile.gettempdir()))}")
        admin = admin_client(settings.kafka_connection)
        for topic, flush_messages in TOPICS.items():
            ensure_topics(admin, source_topics(topic, PARTITIONS, flush_messages=flush_messages), 1)
        writers = [Writer(settings, topic) for topic in TOPICS]
        for writer in writers:
            writer.write_one_by_one(100)  # warms up the broker
            writer.waits_ms.clear()
        for _ in range(options.turns):
            for writer in writers:
                writer.write_one_by_one(options.single)
                writer.write_many(options.many)
        for writer in writers:
            assert writer.count_on_log() == writer.acknowledged, "the log is not what was acknowledged"
            print(latency_line(f"{writer.topic}: acknowledgement", writer.waits_ms))
            rates = sorted(writer.rates)
            print(
                f"{writer.topic}: events/s, {PARTITIONS} partitions".ljust(38)
                + f"median {rates[len(rates) // 2]:,.0f}  ({rates[0]:,.0f} to {rates[-1]:,.0f} in {len(rates)} turns)"
            )


def file_system(directory: Path) -> str:
    """Return the type and device of the file system that contains a directory."""
    mounts = [
        mount for mount in psutil.disk_partitions(all=True) if directory.is_relative_to(mount.mountpoint)
    ]
    mount = max(mounts, key=lambda mount: len(mount.mountpoint))
    return f"{mount.fstype} on {mount.device}"


if __name__ == "__main__":
    main()
