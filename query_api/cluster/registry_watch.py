"""Follows the version registry's topic, so that a promotion takes effect before the next regular poll."""

import time
from collections.abc import Callable

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from include.kafka.log_reading import log_consumer
from include.kafka.topics import VERSION_REGISTRY_TOPIC

POLL_S = 0.5


class RegistryWatch:
    """Calls `on_change` for every appended record. One thread calls `run_once` in a loop."""

    def __init__(self, bootstrap_servers: str, on_change: Callable[[], None]) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._on_change = on_change
        self._consumer: Consumer | None = None

    def run_once(self) -> None:
        """Wait briefly for the next record. The node's regular poll finds what is missed while Kafka is unavailable."""
        if self._consumer is None:
            self._consumer = log_consumer(self._bootstrap_servers, fetch_wait_ms=int(POLL_S * 1000))
            self._consumer.assign([TopicPartition(VERSION_REGISTRY_TOPIC, 0, OFFSET_END)])
        message = self._consumer.poll(POLL_S)
        if message is None:
            return
        error = message.error()
        if error is None:
            self._on_change()
        elif error.name() != "_PARTITION_EOF":
            # The topic does not exist yet, or the broker is unavailable: librdkafka retries.
            time.sleep(POLL_S)
