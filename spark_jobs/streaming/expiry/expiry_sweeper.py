"""Removes expired keys again and again, in a thread of the driver."""

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from include.declarations.lifetimes.expiry import Expiry
from include.declarations.read_model import ReadModel
from include.kafka.log_reading import log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, partition_count
from include.settings import Settings
from include.versions.registry import VersionRegistry
from spark_jobs.streaming.expiry.removals import changelog_producer, remove_expired
from spark_jobs.streaming.periodic.changelog_snapshot import ChangelogSnapshot
from spark_jobs.streaming.periodic.driver_worker import DriverWorker

LOG = logging.getLogger(__name__)

# A sweep for each twentieth of the expiry time, within these bounds.
SWEEPS_PER_EXPIRY = 20
SHORTEST_S, LONGEST_S = 1.0, 30.0


class ExpirySweeper(DriverWorker):
    """Removes the expired keys of every active version of one read model until it is stopped."""

    def __init__(self, settings: Settings, model: ReadModel, expires: Expiry) -> None:
        self._after_s = expires.after_s(settings.stream)
        interval_s = min(max(self._after_s / SWEEPS_PER_EXPIRY, SHORTEST_S), LONGEST_S)
        super().__init__(f"expiry of {model.name}", interval_s)
        self._settings = settings
        self._model = model
        self._expires = expires

    def _work(self) -> None:
        """Sweep until it is stopped. The states are read again after an error."""
        servers = self._settings.kafka.bootstrap_servers
        producer = changelog_producer(servers)
        # Changelog topic -> the states on it, which each sweep brings up to date.
        states: dict[str, ChangelogSnapshot] = {}
        with VersionRegistry(servers) as versions, ExitStack() as consumers:
            while not self._is_stopping.wait(self._pause_s):
                record = versions.read().get(self._model.name)
                active = {version.changelog_topic for version in record.active} if record else set()
                for ended in states.keys() - active:
                    del states[ended]
                for topic in active:
                    if topic not in states:
                        partitions = partition_count(admin_client(servers), topic)
                        if partitions is None:
                            continue
                        consumer = log_consumer(servers)
                        consumers.callback(consumer.close)
                        registry = SchemaRegistry(self._settings.registry.url)
                        states[topic] = ChangelogSnapshot(consumer, registry, topic, partitions)
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


def sweep_once(
    bootstrap_servers: str, registry: SchemaRegistry, expires: Expiry, after_s: float, changelog_topic: str
) -> int:
    """Remove the expired keys of one version, such as one that has caught up without the driver; return their number.

    Raises KafkaUnavailableError, RegistryUnavailableError.
    """
    consumer = log_consumer(bootstrap_servers)
    try:
        partitions = partition_count(admin_client(bootstrap_servers), changelog_topic) or 0
        states = ChangelogSnapshot(consumer, registry, changelog_topic, partitions)
        producer = changelog_producer(bootstrap_servers)
        return remove_expired(producer, changelog_topic, states, expires, after_s)
    finally:
        consumer.close()
