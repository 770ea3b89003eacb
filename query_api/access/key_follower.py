"""Follows the topic of the API keys into the node's file. A thread of the materializer runs it."""

import logging
import time
from pathlib import Path
from typing import Self

from confluent_kafka import Consumer, TopicPartition

from include.access.key_topic import KEY_TOPIC, KeyTopic
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer, offset_bounds_of
from include.settings import Settings
from query_api.access.key_file import write_key_file

POLL_S = 0.5
# A topic that was deleted or created again is read again within this time, even if no record arrives.
READ_AGAIN_S = 30.0
RETRY_S = 1.0

log = logging.getLogger(__name__)


class KeyFollower:
    """Writes all keys into the file after each change of the topic. One thread calls `run_once` in a loop.

    waiting_for: why the keys have not been read since the start, or cannot be written; empty once they are in the file.
    """

    def __init__(self, bootstrap_servers: str, replication_factor: int, directory: Path) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = KeyTopic(bootstrap_servers, replication_factor)
        self._directory = directory
        # One that reads the keys, and one that waits at the end of the topic.
        self._clients: tuple[Consumer, Consumer] | None = None
        self._read_at = float("-inf")
        self.waiting_for = "The API keys have not been read yet."

    @classmethod
    def of_node(cls, settings: Settings) -> Self | None:
        """Return the follower of a node; None if its callers have no keys."""
        if not settings.auth.accepts_keys:
            return None
        factor = settings.topics.replication_factor
        return cls(settings.kafka.bootstrap_servers, factor, settings.store_dir)

    def run_once(self) -> None:
        """Read the keys if they may have changed, then wait briefly for the next change."""
        try:
            if time.monotonic() - self._read_at >= READ_AGAIN_S:
                self._read()
            self._wait()
        except (KafkaUnavailableError, OSError) as error:
            # The keys in the file go on. A node that has not read them since its start is not ready.
            log.warning("the API keys cannot be followed: %s", error)
            if self.waiting_for or isinstance(error, OSError):
                self.waiting_for = f"The API keys cannot be read: {error}"
            self._begin_again()
            time.sleep(RETRY_S)

    def _read(self) -> None:
        if self._clients is None:
            self._topic.ensure()
            watch = log_consumer(self._bootstrap_servers, fetch_wait_ms=int(POLL_S * 1000))
            self._clients = log_consumer(self._bootstrap_servers), watch
        reader, watch = self._clients
        # Before the keys are read: a record that is appended meanwhile causes another reading.
        _, end = offset_bounds_of(reader, KEY_TOPIC, 0)
        write_key_file(self._directory, self._topic.read_with(reader).values())
        watch.assign([TopicPartition(KEY_TOPIC, 0, end)])
        self._read_at = time.monotonic()
        self.waiting_for = ""

    def _wait(self) -> None:
        message = None if self._clients is None else self._clients[1].poll(POLL_S)
        if message is None:
            return
        error = message.error()
        if error is None:
            self._read_at = float("-inf")
        elif error.name() != "_PARTITION_EOF":
            raise KafkaUnavailableError(str(error))

    def _begin_again(self) -> None:
        """Close the clients, and connect at the next call: the topic may have to be created again."""
        for client in self._clients or ():
            client.close()
        self._clients, self._read_at = None, float("-inf")
