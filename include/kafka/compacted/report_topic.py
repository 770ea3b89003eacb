"""Compacted topics with one partition: the newest record of each key, and reports that are published on such a topic."""

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from confluent_kafka import Consumer, Producer

from include.boot_clock import UNKNOWN_BOOT, boot_id, boot_s
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import partition_count

# Enough to include the newest report of each key: each is reported every two seconds.
TAIL_REPORTS = 300
# A writer whose newest report is older has stopped.
FRESH_S = 15.0
# A report that the brokers have not accepted by then is dropped: the next one replaces it.
MESSAGE_TIMEOUT_MS = 5000
FLUSH_TIMEOUT_S = 5.0


def newest_by_key(consumer: Consumer, topic: str, records: int | None = None) -> dict[bytes, bytes]:
    """Return the newest value of each key that is not deleted; empty if the topic does not exist.

    records: how many of the last records to read; None for all. Raises KafkaUnavailableError.
    """
    if partition_count(consumer, topic) is None:
        return {}
    newest: dict[bytes, bytes] = {}
    for message in read_tail(consumer, topic, 0, records):
        key, value = message.key() or b"", message.value()
        key = key.encode() if isinstance(key, str) else key
        if value is None:
            newest.pop(key, None)
        else:
            newest[key] = value
    return newest


@dataclass(frozen=True)
class Report:
    """A report's fields, and the seconds since it was made."""

    fields: dict[str, Any]
    age_s: float

    @property
    def is_fresh(self) -> bool:
        """Whether its writer still reports."""
        return self.age_s < FRESH_S

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Read a report that was published; raises ValueError or KeyError."""
        fields: dict[str, Any] = json.loads(value)
        if fields.get("boot_id") == boot_id() != UNKNOWN_BOOT:
            return cls(fields, boot_s() - float(fields["at_boot_s"]))
        # Made on another machine: by the wall clocks of both.
        return cls(fields, (datetime.now(UTC) - datetime.fromisoformat(fields["at"])).total_seconds())


@dataclass(frozen=True)
class ReportTopic:
    """A topic on which writers publish a report on each key every two seconds."""

    name: str

    def newest(self, consumer: Consumer) -> list[Report]:
        """Return the newest report on each key, regardless of its age; raises KafkaUnavailableError."""
        return [Report.parse(v) for v in newest_by_key(consumer, self.name, TAIL_REPORTS).values()]

    def read(self, bootstrap_servers: str) -> list[Report]:
        """Return the same with a consumer of its own."""
        with closing(log_consumer(bootstrap_servers)) as consumer:
            return self.newest(consumer)


class ReportPublisher:
    """Publishes reports on a topic, without ever waiting for a broker."""

    def __init__(self, bootstrap_servers: str, topic: ReportTopic) -> None:
        self._topic = topic.name
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "message.timeout.ms": MESSAGE_TIMEOUT_MS,
                "linger.ms": 0,
                "log_level": 0,
            }
        )

    def publish(self, key: str, fields: Mapping[str, object]) -> None:
        """Publish a report on a key with the time of now; it is dropped while the producer's queue is full."""
        clock = {"at": datetime.now(UTC).isoformat(), "boot_id": boot_id(), "at_boot_s": boot_s()}
        with suppress(BufferError):
            self._producer.produce(
                self._topic, key=key.encode(), value=json.dumps({**fields, **clock}).encode()
            )
        self._producer.poll(0)

    def close(self) -> None:
        """Send what is still in the producer's queue."""
        self._producer.flush(FLUSH_TIMEOUT_S)
