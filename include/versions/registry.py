"""The version registry: which version of each read model is live, which is a candidate, and the stage of each.

One record a read model on the compacted one-partition topic `read-models`, as JSON. A change is a compare-and-set on
the record's revision. Kafka has no such operation; a transaction gives it: starting one fences every other writer, so
whoever read the record before us and has not appended yet cannot append any more.
"""

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from confluent_kafka import KafkaException, Producer

from include.errors import KafkaUnavailableError, RevisionConflictError
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import (
    COMPACTED,
    VERSION_REGISTRY_TOPIC,
    Topic,
    admin_client,
    changelog_topic,
    ensure_topics,
    partition_count,
)

TRANSACTIONAL_ID = "foldlake-version-registry"
TRANSACTION_TIMEOUT_S = 10.0
READABLE_WITHIN_S = 10.0


class Stage(StrEnum):
    """Where a version is in its life."""

    BUILDING = "building"  # a rebuild fills it by itself: the stream driver and the nodes pass it over
    CANDIDATE = "candidate"  # handed over: the driver folds it in real time, the nodes load it
    LIVE = "live"
    PREVIOUS = "previous"  # was live, kept for rollback
    RETIRED = "retired"
    ABANDONED = "abandoned"


ACTIVE_STAGES = frozenset({Stage.CANDIDATE, Stage.LIVE, Stage.PREVIOUS})
UNFINISHED_STAGES = frozenset({Stage.BUILDING, Stage.CANDIDATE})


@dataclass(frozen=True)
class Version:
    """One version of a read model.

    run_id: the rebuild that makes it; empty for a first version.
    live_since: ISO time since when a live version is live; empty while it is not live.
    retire_after: ISO time after which a previous version goes; empty while it is not previous.
    replaced_in: revision of the record in which a previous version ceased to be live; 0 while it is not previous.
    """

    number: int
    stage: Stage
    fold_revision: int
    changelog_topic: str
    reason: str
    created_at: str
    run_id: str = ""
    live_since: str = ""
    retire_after: str = ""
    replaced_in: int = 0

    @property
    def is_active(self) -> bool:
        """Whether the stream driver folds it and query nodes may hold it."""
        return self.stage in ACTIVE_STAGES


@dataclass(frozen=True)
class ReadModelVersions:
    """The registry's record of one read model; `revision` grows by one with each change."""

    read_model: str
    revision: int
    versions: tuple[Version, ...]
    updated_at: str

    @property
    def live(self) -> Version | None:
        """The version that readers get."""
        return next((v for v in self.versions if v.stage is Stage.LIVE), None)

    @property
    def candidate(self) -> Version | None:
        """The version that a rebuild has handed over and not promoted yet, if any."""
        return next((v for v in self.versions if v.stage is Stage.CANDIDATE), None)

    @property
    def unfinished(self) -> Version | None:
        """The version that a rebuild is at work on, if any."""
        return next((v for v in self.versions if v.stage in UNFINISHED_STAGES), None)

    def version(self, number: int) -> Version | None:
        """Return the version with this number, whatever its stage, or None."""
        return next((v for v in self.versions if v.number == number), None)

    @property
    def active(self) -> tuple[Version, ...]:
        """All versions that are folded, in ascending order of number."""
        return tuple(v for v in self.versions if v.is_active)

    def to_json(self) -> bytes:
        """Return the record's value as the topic carries it."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: bytes) -> "ReadModelVersions":
        """Read the record's value; raises ValueError when it is not one."""
        fields: dict[str, Any] = json.loads(value)
        versions = tuple(Version(**{**v, "stage": Stage(v["stage"])}) for v in fields["versions"])
        return cls(**{**fields, "versions": versions})


def first_version(read_model: str, fold_revision: int) -> ReadModelVersions:
    """Return the record of a read model that starts its life: version 1, live at once."""
    now = datetime.now(UTC).isoformat()
    topic = changelog_topic(read_model, 1)
    version = Version(1, Stage.LIVE, fold_revision, topic, "first start", now, live_since=now)
    return ReadModelVersions(read_model=read_model, revision=1, versions=(version,), updated_at=now)


class VersionRegistry:
    """Reads and changes the version registry. Not for use by several threads at once."""

    def __init__(self, bootstrap_servers: str, replication_factor: int = 1) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._replication_factor = replication_factor
        self._consumer = log_consumer(bootstrap_servers)
        self._admin = admin_client(bootstrap_servers)

    def ensure_topic(self) -> None:
        """Make the topic when it does not exist."""
        ensure_topics(self._admin, [Topic(VERSION_REGISTRY_TOPIC, 1, COMPACTED)], self._replication_factor)

    def __enter__(self) -> Self:
        """Return it; it is closed at the end of the block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection that reads."""
        self._consumer.close()

    def read(self) -> dict[str, ReadModelVersions]:
        """Return the newest record of every read model; empty when the topic does not exist yet.

        Raises KafkaUnavailableError when no broker answers.
        """
        if partition_count(self._admin, VERSION_REGISTRY_TOPIC) is None:
            return {}
        records: dict[str, ReadModelVersions] = {}
        for message in read_tail(self._consumer, VERSION_REGISTRY_TOPIC, 0):
            value = message.value()
            if value is not None:
                record = ReadModelVersions.from_json(value)
                records[record.read_model] = record
        return records

    def compare_and_set(self, record: ReadModelVersions, expected_revision: int) -> ReadModelVersions:
        """Append `record` as revision `expected_revision + 1` and return it as appended (0 expects that none exists).

        Every reader sees it when this returns.

        Raises RevisionConflictError when the record is at another revision, or another writer came first;
        KafkaUnavailableError when the broker does not answer.
        """
        appended = replace(record, revision=expected_revision + 1, updated_at=datetime.now(UTC).isoformat())
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
                "log_level": 3,
            }
        )
        try:
            producer.init_transactions(TRANSACTION_TIMEOUT_S)  # from here on every earlier writer is fenced
            self._expect(record.read_model, expected_revision)
            producer.begin_transaction()
            producer.produce(VERSION_REGISTRY_TOPIC, key=record.read_model.encode(), value=appended.to_json())
            producer.commit_transaction(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            kafka_error = error.args[0]
            if kafka_error.name() in {"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}:
                message = (
                    f"Another writer changed {record.read_model} in the version registry: read it again."
                )
                raise RevisionConflictError(message) from error
            message = f"The version registry could not be written ({error}): is the broker up?"
            raise KafkaUnavailableError(message) from error
        self._wait_until_readable(appended)
        return appended

    def _wait_until_readable(self, appended: ReadModelVersions) -> None:
        # A commit is answered before its marker is in the log, up to which others read.
        deadline_s = time.monotonic() + READABLE_WITHIN_S
        with suppress(KafkaUnavailableError):  # it is appended, whoever can read it now
            while time.monotonic() < deadline_s:
                found = self.read().get(appended.read_model)
                if found is not None and found.revision >= appended.revision:
                    return
                time.sleep(0.01)

    def _expect(self, read_model: str, expected_revision: int) -> None:
        current = self.read().get(read_model)
        revision = 0 if current is None else current.revision
        if revision != expected_revision:
            message = (
                f"The version registry has {read_model} at revision {revision}, not {expected_revision}: "
                "somebody changed it in between. Read it again and decide again."
            )
            raise RevisionConflictError(message)
