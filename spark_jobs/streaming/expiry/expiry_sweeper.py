"""Removes expired keys again and again, in a thread of the driver."""

import logging
import threading
from collections.abc import Mapping

from confluent_kafka import Producer

from include.declarations.lifetimes.expiry import Expiry
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.kafka.log_reading import log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, partition_count
from include.settings import Settings
from include.versions.registry import VersionRegistry
from spark_jobs.streaming.expiry.removals import changelog_producer, remove_expired
from spark_jobs.streaming.periodic.live_states import LiveStates

LOG = logging.getLogger(__name__)

# A sweep for each twentieth of the expiry time, within these bounds.
SWEEPS_PER_EXPIRY = 20
SHORTEST_S, LONGEST_S = 1.0, 30.0
STOP_TIMEOUT_S = 10.0


class ExpirySweeper:
    """Removes the expired keys of every active version of one read model until it is stopped."""

    def __init__(self, settings: Settings, model: ReadModel, expires: Expiry) -> None:
        self._settings = settings
        self._model = model
        self._expires = expires
        self._after_s = expires.after_s(settings.stream)
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"expiry of {model.name}", daemon=True)

    def start(self) -> None:
        """Start to sweep."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the sweep that is being made."""
        self._is_stopping.set()
        self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        interval_s = min(max(self._after_s / SWEEPS_PER_EXPIRY, SHORTEST_S), LONGEST_S)
        servers = self._settings.kafka.bootstrap_servers
        states: dict[str, LiveStates] = {}
        producer = changelog_producer(servers)
        with VersionRegistry(servers) as versions:
            while not self._is_stopping.wait(interval_s):
                try:
                    self._sweep(producer, versions, states)
                except FoldlakeError as error:
                    LOG.warning("expired keys of %s are not removed yet: %s", self._model.name, error)
                except Exception:
                    # A thread that ended would be noticed by nobody.
                    LOG.exception("expired keys of %s are not removed yet", self._model.name)
                    states.clear()

    def _sweep(self, producer: Producer, versions: VersionRegistry, states: dict[str, LiveStates]) -> None:
        """Remove the expired keys of each active version. states: those of each changelog, which this keeps up to date."""
        servers = self._settings.kafka.bootstrap_servers
        record = versions.read().get(self._model.name)
        active = {version.changelog_topic for version in record.active} if record else set()
        for ended in states.keys() - active:
            del states[ended]
        for topic in active:
            if topic not in states:
                partitions = partition_count(admin_client(servers), topic)
                if partitions is None:
                    continue
                registry = SchemaRegistry(self._settings.registry.url)
                states[topic] = LiveStates(log_consumer(servers), registry, topic, partitions)
            number = remove_expired(producer, topic, states[topic], self._expires, self._after_s)
            if number:
                LOG.info("removed %d expired keys from %s", number, topic)


def expiry_sweepers(settings: Settings, models: Mapping[str, ReadModel]) -> list[ExpirySweeper]:
    """Return a sweeper for each read model whose items expire; none is running yet."""
    return [
        ExpirySweeper(settings, model, model.expires)
        for model in models.values()
        if model.expires is not None
    ]


def sweep_once(settings: Settings, model: ReadModel, changelog_topic: str) -> int:
    """Remove the expired keys of one version, such as one that has caught up without the driver; return their number.

    Raises KafkaUnavailableError, RegistryUnavailableError.
    """
    if model.expires is None:
        return 0
    servers = settings.kafka.bootstrap_servers
    consumer = log_consumer(servers)
    try:
        partitions = partition_count(admin_client(servers), changelog_topic) or 0
        registry = SchemaRegistry(settings.registry.url)
        states = LiveStates(consumer, registry, changelog_topic, partitions)
        after_s = model.expires.after_s(settings.stream)
        return remove_expired(changelog_producer(servers), changelog_topic, states, model.expires, after_s)
    finally:
        consumer.close()
