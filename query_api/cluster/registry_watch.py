"""Notices a change of the version registry as it is appended, so that a promotion need not wait for the next look."""

import time
from collections.abc import Callable

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from include.kafka.log_reading import log_consumer
from include.kafka.topics import VERSION_REGISTRY_TOPIC
from include.settings import Settings

POLL_S = 0.5


class RegistryWatch:
    """Calls `on_change` for every record that is appended; `run_once` has to be called all the time, by one thread."""

    def __init__(self, settings: Settings, on_change: Callable[[], None]) -> None:
        self._settings = settings
        self._on_change = on_change
        self._consumer: Consumer | None = None

    def run_once(self) -> None:
        """Wait a moment for the next record. What is missed while Kafka is away, the node's regular look finds."""
        if self._consumer is None:
            self._consumer = log_consumer(self._settings.kafka.bootstrap_servers)
            self._consumer.assign([TopicPartition(VERSION_REGISTRY_TOPIC, 0, OFFSET_END)])
        message = self._consumer.poll(POLL_S)
        if message is None:
            return
        error = message.error()
        if error is None:
            self._on_change()
        elif error.name() != "_PARTITION_EOF":
            time.sleep(
                POLL_S
            )  # the topic is not there yet, or the broker is away: it is tried again by itself
