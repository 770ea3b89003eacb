"""Removes the expired keys of one version: a removal for each on its changelog, from which nodes and lake remove them, too.

An item has expired once the newest item of the version is later by the expiry time. The clock is that of the events: without new events,
nothing expires, and a version that folds old events has the windows that were there at that time.
"""

from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import KafkaException, Producer

from include.declarations.lifetimes.expiry import Expiry
from include.errors import KafkaUnavailableError
from include.kafka.state_record import StateRecord
from spark_jobs.streaming.periodic.changelog_snapshot import ChangelogSnapshot

FLUSH_TIMEOUT_S = 60.0


def expired_keys(states: Mapping[bytes, StateRecord], expires: Expiry, after_s: float) -> list[bytes]:
    """Return the keys of the states that have expired, given the state of every key; one without a time never expires."""
    known = ((key, record.state[expires.field]) for key, record in states.items())
    times = {key: time for key, time in known if time is not None}
    if not times:
        return []
    limit = max(times.values()) - timedelta(seconds=after_s)
    return [key for key, time in times.items() if time < limit]


def changelog_producer(bootstrap_servers: str) -> Producer:
    """Return a producer that writes to the partitions that Spark writes a key to."""
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
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
