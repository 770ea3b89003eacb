"""The version registry: one record for each read model on the compacted one-partition topic `read-models`, as JSON; and its changes.

A change is a compare-and-set on the record's revision. Kafka has no such operation; transactions provide it: starting a
transaction fences every other writer, so a writer that read the record earlier and has not appended yet can no longer append.
`change` applies a transition by compare-and-set, and retries after a conflict.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from confluent_kafka import KafkaException, Producer

from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError, RevisionConflictError
from include.kafka.compacted_topics import newest_by_key
from include.kafka.log_reading import log_consumer
from include.kafka.topic_state import ends_if_known
from include.kafka.topics import (
    COMPACTED,
    VERSION_REGISTRY_TOPIC,
    Topic,
    admin_client,
    ensure_topics,
)
from include.position import Offsets
from include.settings import KafkaConnection
from include.versions.transitions import PromotionLostError, Transition, UnknownVersionError
from include.versions.version_record import ReadModelVersions, Version
from include.waiting import wait_for

TRANSACTIONAL_ID = "foldlake-version-registry"
TRANSACTION_TIMEOUT_S = 10.0
VISIBLE_TIMEOUT_S = 10.0
VISIBLE_POLL_S = 0.01
# Two writers resolve a conflict at the first retry; more than a few conflicts have another cause.
ATTEMPTS = 10
FENCED = frozenset({"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})


class VersionRegistry:
    """Reads and changes the version registry. A context manager that closes it on exit; not thread-safe."""

    def __init__(self, kafka: KafkaConnection, replication_factor: int = 1) -> None:
        self._kafka = kafka
        self._replication_factor = replication_factor
        self._consumer = log_consumer(kafka)

    @property
    def kafka(self) -> KafkaConnection:
        """The brokers that hold the registry."""
        return self._kafka

    def __enter__(self) -> Self:
        """Return the registry, which is closed at the end of the block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the registry."""
        self.close()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def ensure_topic(self) -> None:
        """Create the topic if it does not exist."""
        admin = admin_client(self._kafka)
        ensure_topics(admin, [Topic(VERSION_REGISTRY_TOPIC, 1, COMPACTED)], self._replication_factor)

    def read(self) -> dict[str, ReadModelVersions]:
        """Return the newest record of every read model; empty when the topic does not exist yet.

        Raises KafkaUnavailableError when no broker responds.
        """
        newest = newest_by_key(self._consumer, VERSION_REGISTRY_TOPIC)
        records = map(ReadModelVersions.from_json, newest.values())
        return {record.read_model: record for record in records}

    def compare_and_set(self, record: ReadModelVersions, expected_revision: int) -> ReadModelVersions:
        """Append `record` as revision `expected_revision + 1` and return it as appended; 0 expects that no record exists.

        The record is visible to every reader when this returns.

        Raises RevisionConflictError when the record is at another revision, or another writer appended first;
        KafkaUnavailableError when the broker does not respond.
        """
        (appended,) = self.compare_and_set_all([(record, expected_revision)])
        return appended

    def compare_and_set_all(
        self, changes: Sequence[tuple[ReadModelVersions, int]]
    ) -> tuple[ReadModelVersions, ...]:
        """Append records of several read models, each with its expected revision: all of them, or none.

        Readers get them at once, in one transaction. Returns and raises as `compare_and_set`.
        """
        now = datetime.now(UTC).isoformat()
        appended = tuple(
            replace(record, revision=expected + 1, updated_at=now) for record, expected in changes
        )
        names = ", ".join(record.read_model for record in appended)
        try:
            if not self._append(appended) and not self._append(appended):
                raise KafkaUnavailableError(
                    f"Kafka did not confirm the change of {names} in the version registry, which may have been made: check "
                    "that the broker is up, then read the record again."
                )
        except KafkaException as error:
            if _is_fenced(error):
                raise RevisionConflictError(
                    f"Another writer changed the record of {names} in the version registry: read it again."
                ) from error
            raise KafkaUnavailableError(
                f"The version registry could not be written ({error}): check that the broker is up."
            ) from error
        self._wait_until_visible(appended)
        return appended

    def _append(self, appended: Sequence[ReadModelVersions]) -> bool:
        """Append the records if they are not there yet; False when the commit failed, and may have been made all the same."""
        producer = Producer(
            {
                **self._kafka.client_settings,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
                "log_level": 3,
            }
        )
        # From now on every earlier writer is fenced, and what it began to commit is in the log or never will be.
        producer.init_transactions(TRANSACTION_TIMEOUT_S)
        current = self.read()
        if all(current.get(record.read_model) == record for record in appended):
            return True
        for record in appended:
            _require_revision(record.read_model, current.get(record.read_model), record.revision - 1)
        producer.begin_transaction()
        for record in appended:
            producer.produce(VERSION_REGISTRY_TOPIC, key=record.read_model.encode(), value=record.to_json())
        try:
            producer.commit_transaction(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            if _is_fenced(error):
                raise
            return False
        return True

    def _wait_until_visible(self, appended: Sequence[ReadModelVersions]) -> None:
        # The broker acknowledges a commit before its marker is in the log, and consumers read only up to the marker.
        with suppress(KafkaUnavailableError):  # the record is appended, even if it cannot be read back now
            wait_for(
                lambda: self._has(appended),
                timeout_s=VISIBLE_TIMEOUT_S,
                poll_s=VISIBLE_POLL_S,
            )

    def _has(self, appended: Sequence[ReadModelVersions]) -> bool:
        found = self.read()
        return all(
            record.read_model in found and found[record.read_model].revision >= record.revision
            for record in appended
        )


def _require_revision(read_model: str, current: ReadModelVersions | None, expected_revision: int) -> None:
    revision = 0 if current is None else current.revision
    if revision != expected_revision:
        raise RevisionConflictError(
            f"The version registry has {read_model} at revision {revision}, not {expected_revision}: another writer "
            "changed it in between. Read it again, then retry."
        )


def _is_fenced(error: KafkaException) -> bool:
    return error.args[0].name() in FENCED


def record_of(registry: VersionRegistry, read_model: str) -> ReadModelVersions:
    """Return the registry's record of a read model; raises UnknownVersionError when it has none."""
    return known_record(registry.read(), read_model)


def known_record(records: Mapping[str, ReadModelVersions], read_model: str) -> ReadModelVersions:
    """Return a read model's record of those in the registry; raises UnknownVersionError when it has none."""
    record = records.get(read_model)
    if record is None:
        raise UnknownVersionError(
            f"The version registry has no {read_model!r} yet: the stream driver registers version 1 at its first start."
        )
    return record


def change(registry: VersionRegistry, read_model: str, transition: Transition) -> ReadModelVersions:
    """Apply a transition by compare-and-set; after a conflict, read the record again and retry.

    Raises the transition's errors, UnknownVersionError, or RevisionConflictError after ATTEMPTS conflicts.
    """
    return change_together(registry, {read_model: transition})[read_model]


def change_together(
    registry: VersionRegistry, transitions: Mapping[str, Transition]
) -> dict[str, ReadModelVersions]:
    """Apply a transition to each of several read models, all of them or none, as `change` does for one; return their records."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            before = {name: record_of(registry, name) for name in transitions}
            after = {name: transition(before[name]) for name, transition in transitions.items()}
            changed = [
                (record, before[name].revision)
                for name, record in after.items()
                if record is not before[name]
            ]
            if not changed:
                return after
            appended = registry.compare_and_set_all(changed)
            return after | {record.read_model: record for record in appended}
        except RevisionConflictError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def change_live(
    registry: VersionRegistry, read_model: str, transition: Transition, expected_live: int | None = None
) -> ReadModelVersions:
    """Apply a promotion or rollback by compare-and-set; of two concurrent ones, one fails.

    expected_live: the number of the version that the caller expects to replace, 0 for none; None for the one that is live now.

    Raises PromotionLostError when another version became live since; after any other concurrent change, the transition is
    applied to the changed record.
    """
    before = _number(record_of(registry, read_model).live) if expected_live is None else expected_live
    return change(registry, read_model, unless_replaced(transition, before))


def unless_replaced(transition: Transition, expected_live: int) -> Transition:
    """Return a promotion or rollback that raises PromotionLostError if another version than the expected one is live."""

    def decide(record: ReadModelVersions) -> ReadModelVersions:
        changed = transition(record)
        if changed is not record and _number(record.live) != expected_live:
            raise PromotionLostError(
                f"Nothing was promoted: v{_number(record.live)} of {record.read_model} replaced v{expected_live} "
                "in the meantime. Check `./foldlake versions`, then decide again."
            )
        return changed

    return decide


def _number(version: Version | None) -> int:
    return 0 if version is None else version.number


def source_ends_if_known(
    kafka: KafkaConnection, model: ReadModel, number: int | None, read: Mapping[int, int] | None = None
) -> Offsets | None:
    """Return the end offsets of the source topic of a version; None if Kafka does not respond: for what is only shown.

    read: end offsets above these are lowered to where the records end, so that only what has records looks unread. number: None, and a version that the registry does not list, stand for the topic that the read model declares.
    """
    try:
        with VersionRegistry(kafka) as registry:
            record = registry.read().get(model.name)
    except KafkaUnavailableError:
        return None
    version = None if record is None or number is None else record.version(number)
    source_topic = "" if version is None else version.source_topic
    return ends_if_known(kafka, model.reading(source_topic).source_topic, read)


def live_version_if_known(kafka: KafkaConnection, read_model: str) -> Version | None:
    """Return the live version of a read model; None if there is none, or if Kafka does not respond."""
    try:
        with VersionRegistry(kafka) as registry:
            record = registry.read().get(read_model)
    except KafkaUnavailableError:
        return None
    return None if record is None else record.live
