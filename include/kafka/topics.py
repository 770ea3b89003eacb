"""Names and settings of the topics that Foldlake makes, and making them."""

from dataclasses import dataclass, field

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata  # type: ignore[attr-defined]  # not in its __all__

from include.errors import KafkaUnavailableError
from include.waiting import wait_for

VERSION_REGISTRY_TOPIC = "read-models"
PROGRESS_TOPIC = "stream-progress"

ADMIN_TIMEOUT_S = 15.0
POLL_INTERVAL_S = 0.05
ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS"

FOREVER = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
# A changelog is read from the start by every node that has lost its store: small segments and a low dirty ratio keep
# it close to one record a key.
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.2",
    "segment.bytes": str(64 * 1024 * 1024),
}


@dataclass(frozen=True)
class Topic:
    """A topic to be made: name, number of partitions and its settings."""

    name: str
    partitions: int
    config: dict[str, str] = field(default_factory=dict)


def admin_client(bootstrap_servers: str, *, log_level: int = 3) -> AdminClient:
    """Return a client that asks and changes what a cluster has; to ask whether a topic exists does not make it.

    librdkafka's admin client is a producer, whose questions make topics where the brokers' `auto.create.topics.enable` is on.
    """
    return AdminClient(
        {
            "bootstrap.servers": bootstrap_servers,
            "log_level": log_level,
            "allow.auto.create.topics": False,
        }
    )


def changelog_topic(model_name: str, version: int) -> str:
    """Return the changelog topic of a version of a read model."""
    return f"{model_name}.v{version}.changelog"


def dead_letter_topic(source_topic: str) -> str:
    """Return the topic that takes what cannot be decoded from a source topic."""
    return f"{source_topic}.dead-letter"


def partition_count(admin: AdminClient, topic: str) -> int | None:
    """Return how many partitions a topic has, or None when there is no such topic.

    Raises KafkaUnavailableError when no broker answers.
    """
    metadata = _metadata(admin, topic)
    return None if metadata is None else len(metadata.partitions)


def _metadata(admin: AdminClient, topic: str) -> TopicMetadata | None:
    try:
        metadata = admin.list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        message = f"Cannot list the topics ({error}). Hint: check that the brokers are up and their address is right."
        raise KafkaUnavailableError(message) from error
    return metadata if metadata is not None and metadata.error is None else None


def ensure_topics(admin: AdminClient, topics: list[Topic], replication_factor: int) -> None:
    """Make those topics that do not exist yet; leave the others as they are. All can be used when this returns.

    Raises KafkaUnavailableError when the broker does not do it in time.
    """
    made = {topic.name for topic in topics}
    new = [NewTopic(t.name, t.partitions, replication_factor, config=t.config) for t in topics]
    for name, future in admin.create_topics(new, operation_timeout=ADMIN_TIMEOUT_S).items():
        try:
            future.result(ADMIN_TIMEOUT_S * 2)
        except KafkaException as error:
            if error.args[0].name() != ALREADY_EXISTS:
                message = f"Cannot create topic {name} ({error}). Hint: check the brokers' logs."
                raise KafkaUnavailableError(message) from error
            made.remove(name)
        except TimeoutError as error:
            message = f"Cannot create topic {name}: the brokers do not answer in time."
            raise KafkaUnavailableError(message) from error
    for topic in topics:
        _wait_until_known(admin, topic.name, with_leaders=topic.name in made)


def _wait_until_known(admin: AdminClient, topic: str, *, with_leaders: bool) -> None:
    # The controller acknowledges a new topic; the brokers learn of it later, by seconds when they are throttled.
    def is_known() -> bool:
        found = _metadata(admin, topic)
        return found is not None and not (
            with_leaders and any(partition.leader < 0 for partition in found.partitions.values())
        )

    if not wait_for(is_known, timeout_s=ADMIN_TIMEOUT_S, poll_s=POLL_INTERVAL_S):
        raise KafkaUnavailableError(
            f"Topic {topic} was created, but has no leader after {ADMIN_TIMEOUT_S:.0f} s. Hint: check the brokers' logs."
        )


def source_topics(source_topic: str, partitions: int) -> list[Topic]:
    """Return a read model's source topic and its dead-letter topic, kept for ever."""
    return [
        Topic(source_topic, partitions, FOREVER),
        Topic(dead_letter_topic(source_topic), partitions, FOREVER),
    ]


def changelog(name: str, partitions: int) -> Topic:
    """Return a changelog topic: as many partitions as the source."""
    return Topic(name, partitions, COMPACTED)
