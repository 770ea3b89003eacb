"""The topic `api-keys`: one record for each API key, compacted. All nodes follow it, and `./foldlake keys` changes it.

A change reads the keys and appends records in one transaction. Starting a transaction fences every other writer, as in the version
registry, so a revocation is never overwritten by a change that was decided before it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress

from confluent_kafka import Consumer, KafkaException, Producer

from include.access.api_key import ApiKey, parse_key
from include.errors import FoldlakeError, KafkaUnavailableError
from include.kafka.compacted_topics import newest_by_key
from include.kafka.log_reading import log_consumer
from include.kafka.topics import COMPACTED, Topic, admin_client, ensure_topics, partition_count
from include.waiting import wait_for

KEY_TOPIC = "api-keys"
TRANSACTIONAL_ID = "foldlake-api-keys"
TIMEOUT_S = 10.0
VISIBLE_POLL_S = 0.01
FENCED = frozenset({"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})

log = logging.getLogger(__name__)

Keys = Mapping[str, ApiKey]
"""Keys by id."""


class KeyConflictError(FoldlakeError):
    """Another process changed the keys at the same time, so nothing was changed."""


class KeyTopic:
    """Reads and changes the keys. Thread-safe: each call has its own clients."""

    def __init__(self, bootstrap_servers: str, replication_factor: int) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._replication_factor = replication_factor

    def ensure(self) -> None:
        """Create the topic if it does not exist; raises KafkaUnavailableError."""
        admin = admin_client(self._bootstrap_servers)
        ensure_topics(admin, [Topic(KEY_TOPIC, 1, COMPACTED)], self._replication_factor)

    def read(self) -> Keys:
        """Return all keys, also those that are revoked or have expired; raises KafkaUnavailableError."""
        with closing(log_consumer(self._bootstrap_servers)) as consumer:
            return self.read_with(consumer)

    def read_with(self, consumer: Consumer) -> Keys:
        """Return the same with a consumer that the caller has; creates the topic if it does not exist."""
        if partition_count(consumer, KEY_TOPIC) is None:
            self.ensure()
        keys = {}
        for key_id, value in newest_by_key(consumer, KEY_TOPIC).items():
            try:
                key = parse_key(value)
            except ValueError as error:
                # Not accepted: no key is better than one whose limits are unknown.
                log.error("the record of API key %r cannot be read: %s", key_id, error)  # noqa: TRY400 - the record is at fault
                continue
            keys[key.id] = key
        return keys

    def change(self, decide: Callable[[Keys], Sequence[ApiKey]]) -> tuple[ApiKey, ...]:
        """Append the keys that `decide` makes of the present ones, all or none; return them once every reader gets them.

        Raises what `decide` does, KeyConflictError, or KafkaUnavailableError.
        """
        self.ensure()
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": int(TIMEOUT_S * 1000),
                "log_level": 3,
            }
        )
        try:
            # From now on, no other writer can append what it decided before.
            producer.init_transactions(TIMEOUT_S)
            changed = tuple(decide(self.read()))
            producer.begin_transaction()
            for key in changed:
                producer.produce(KEY_TOPIC, key=key.id.encode(), value=key.to_json())
            producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].name() in FENCED:
                raise KeyConflictError("Another process changed the API keys: repeat the command.") from error
            raise KafkaUnavailableError(
                f"The API keys could not be written ({error}). Hint: check that the broker is up, then list the keys."
            ) from error
        with suppress(KafkaUnavailableError):  # they are appended, even if they cannot be read back now
            wait_for(lambda: self._has(changed), timeout_s=TIMEOUT_S, poll_s=VISIBLE_POLL_S)
        return changed

    def _has(self, changed: Sequence[ApiKey]) -> bool:
        found = self.read()
        return all(found.get(key.id) == key for key in changed)
