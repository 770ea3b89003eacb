"""Removes expired keys again and again, in a thread of the driver: a removal for each on its changelog, from which nodes and lake remove them, too.

An item has expired once the newest item of the version is later by the expiry time. The clock is that of the events: without new events,
nothing expires, and a version that folds old events has the windows that were there at that time.
"""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta

from confluent_kafka import KafkaException, Producer

from include.declarations.expiry import Expiry
from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import StateRecord
from include.kafka.topics import admin_client, partition_count
from include.settings import KafkaConnection, Settings
from include.versions.registry import VersionRegistry
from spark_jobs.streaming.workers.changelog_snapshot import ChangelogSnapshot
from spark_jobs.streaming.workers.driver_worker import DriverWorker

LOG = logging.getLogger(__name__)

# A sweep for each twentieth of the expiry time, within these bounds.
SWEEPS_PER_EXPIRY = 20
SHORTEST_S, LONGEST_S = 1.0, 30.0
FLUSH_TIMEOUT_S = 60.0


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
        kafka = self._settings.kafka_connection
        producer = changelog_producer(kafka)
        # Changelog topic -> the states on it, which each sweep brings up to date.
        states: dict[str, ChangelogSnapshot] = {}
        with VersionRegistry(kafka) as versions, ExitStack() as consumers:
            while not self._is_stopping.wait(self._pause_s):
                record = versions.read().get(self._model.name)
                active = {version.changelog_topic for version in record.active} if record else set()
                for ended in states.keys() - active:
                    del states[ended]
                for topic in active:
                    if topic not in states:
                        partitions = partition_count(admin_client(kafka), topic)
                        if partitions is None:
                            continue
                        consumer = log_consumer(kafka)
                        consumers.callback(consumer.close)
                        registry = SchemaRegistry(self._settings.registry.connection)
                        states[topic] = ChangelogSnapshot(consumer, registry, topic, partitions)
                    number = remove_expired(producer, topic, states[topic], self._expires, self._after_s)
                    if number:
                        LOG.info("removed %d expired keys from %s", number, topic)


def sweep_once(
    kafka: KafkaConnection, registry: SchemaRegistry, expires: Expiry, after_s: float, changelog_topic: str
) -> int:
    """Remove the expired keys of one version, such as one that has caught up without the driver; return their number.

    Raises KafkaUnavailableError, RegistryUnavailableError.
    """
    consumer = log_consumer(kafka)
    try:
        partitions = partition_count(admin_client(kafka), changelog_topic) or 0
        states = ChangelogSnapshot(consumer, registry, changelog_topic, partitions)
        producer = changelog_producer(kafka)
        return remove_expired(producer, changelog_topic, states, expires, after_s)
    finally:
        consumer.close()


def expired_keys(states: Mapping[bytes, StateRecord], expires: Expiry, after_s: float) -> list[bytes]:
    """Return the keys of the states that have expired, given the state of every key; one without a time never expires."""
    known = ((key, record.state[expires.field]) for key, record in states.items())
    times = {key: time for key, time in known if time is not None}
    if not times:
        return []
    limit = max(times.values()) - timedelta(seconds=after_s)
    return [key for key, time in times.items() if time < limit]


def changelog_producer(kafka: KafkaConnection) -> Producer:
    """Return a producer that writes to the partitions that Spark writes a key to."""
    return Producer(
        {
            **kafka.client_settings,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "log_level": 3,
        }
    )


def remove_expired(
    producer: Producer, topic: str, states: ChangelogSnapshot, expires: Expiry, after_s: float
) -> int:
    """Write a removal for each key of a changelog that has expired, and return their number.

    A removal may be written twice, and a record may follow it that was folded before: the next call removes it again. Removals that have
    been written are read at the next call.

    Raises KafkaUnavailableError, RegistryUnavailableError.
    """
    known = states.refresh()
    expired = expired_keys(known, expires, after_s)
    try:
        for key in expired:
            _produce(producer, topic, key, known[key])
        left = producer.flush(FLUSH_TIMEOUT_S)
    except KafkaException as error:
        raise KafkaUnavailableError(f"Cannot remove expired keys from {topic}: {error}") from error
    if left:
        raise KafkaUnavailableError(
            f"{left} removals of {topic} were not acknowledged within {FLUSH_TIMEOUT_S:.0f} s. Hint: check that the brokers are up."
        )
    return len(expired)


def _produce(producer: Producer, topic: str, key: bytes, record: StateRecord) -> None:
    while True:
        try:
            producer.produce(topic, None, key, headers=record.position.removal_headers())
        except BufferError:
            # The producer's queue is full: wait for delivery reports.
            producer.poll(0.5)
        else:
            producer.poll(0)
            return
