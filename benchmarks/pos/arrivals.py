"""When the records of topics arrive at a consumer, by their ids."""

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from demo.pos.loading import first_string
from include.kafka.topics import admin_client, partition_count
from include.settings import Settings

POLL_S = 0.1


class Arrivals:
    """Consumes topics from their ends on for the duration of a block.

    at_s: topic -> id -> when the first record of this id arrived, in seconds of the Unix clock.
    """

    def __init__(self, settings: Settings, topics: Sequence[str]) -> None:
        self.at_s: dict[str, dict[str, float]] = {topic: {} for topic in topics}
        admin = admin_client(settings.kafka_connection)
        self._consumer = Consumer(
            {
                **settings.kafka_connection.client_settings,
                "group.id": "arrivals",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign(
            [
                TopicPartition(topic, partition, OFFSET_END)
                for topic in topics
                for partition in range(partition_count(admin, topic) or 0)
            ]
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._consume, daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _consume(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                arrived = self.at_s[str(message.topic())]
                arrived.setdefault(str(first_string(message.value() or b"")), time.time())
