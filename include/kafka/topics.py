"""Names and settings of the topics that Foldlake creates, and their creation."""

from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType, TopicMetadata  # type: ignore[attr-defined]  # not in its __all__

from include.errors import KafkaUnavailableError
from include.settings import KafkaConnection
from include.waiting import wait_for

VERSION_REGISTRY_TOPIC = "read-models"
PROGRESS_TOPIC = "stream-progress"
SCHEMA_REJECTIONS_TOPIC = "schema-rejections"

ADMIN_TIMEOUT_S = 15.0
POLL_INTERVAL_S = 0.05
ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS"
UNAUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"
# A write that is acknowledged is on two brokers, and no broker that lacks it becomes the leader.
REPLICATED = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
MAX_MESSAGE_BYTES = "max.message.bytes"

FOREVER = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
# Every node that has lost its store reads a changelog from the start: small segments and a low dirty ratio keep it
# close to one record per key.
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.2",
    "segment.bytes": str(64 * 1024 * 1024),
}


@dataclass(frozen=True)
class Topic:
    """A topic to be created: name, number of partitions and settings.

    replication_factor: None for the default that is passed to `ensure_topics`.
    """

    name: str
    partitions: int
    config: dict[str, str] = field(default_factory=dict)
    replication_factor: int | None = None


def admin_client(kafka: KafkaConnection, *, log_level: int = 3) -> AdminClient:
    """Return an admin client that never creates a topic by requesting its metadata.

    librdkafka's admin client is a producer: its metadata requests create topics if the brokers' `auto.create.topics.enable` is on.
    """
    return AdminClient(
        {
            **kafka.client_settings,
            "log_level": log_level,
            "allow.auto.create.topics": False,
        }
    )


def changelog_topic(model_name: str, version: int) -> str:
    """Return the changelog topic of a version of a read model."""
    return f"{model_name}.v{version}.changelog"


def dead_letter_topic(source_topic: str) -> str:
    """Return the topic for records of a source topic that cannot be decoded."""
    return f"{source_topic}.dead-letter"


def partition_count(client: AdminClient | Consumer, topic: str) -> int | None:
    """Return the number of partitions of a topic, or None if it does not exist.

    Raises KafkaUnavailableError when no broker responds.
    """
    metadata = _metadata(client, topic)
    return None if metadata is None else len(metadata.partitions)


def max_message_bytes(admin: AdminClient, topic: str) -> int:
    """Return the size of the largest record batch that a topic accepts; raises KafkaUnavailableError."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (future,) = admin.describe_configs([resource], request_timeout=ADMIN_TIMEOUT_S).values()
    try:
        return int(future.result(ADMIN_TIMEOUT_S * 2)[MAX_MESSAGE_BYTES].value)
    except (KafkaException, TimeoutError) as error:
        message = f"Cannot read the setting {MAX_MESSAGE_BYTES} of topic {topic} ({error}). Hint: check that the brokers are up."
        raise KafkaUnavailableError(message) from error


def _metadata(client: AdminClient | Consumer, topic: str) -> TopicMetadata | None:
    try:
        metadata = client.list_topics(topic, timeout=ADMIN_TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        _serve_errors(client)
        message = f"Cannot list the topics ({error}). Hint: check that the brokers are up and their address is right."
        raise KafkaUnavailableError(message) from error
    if metadata is not None and metadata.error is not None and metadata.error.name() == UNAUTHORIZED:
        raise KafkaUnavailableError(f"Cannot read topic {topic} ({metadata.error.str()}).")
    return metadata if metadata is not None and metadata.error is None else None


def _serve_errors(client: AdminClient | Consumer) -> None:
    """Have a client report the errors of its connections. A consumer with partitions would drop a record."""
    if isinstance(client, AdminClient) or not client.assignment():
        client.poll(0)


def ensure_topics(admin: AdminClient, topics: list[Topic], replication_factor: int) -> None:
    """Create the topics that do not exist yet, and leave the others unchanged. All are usable when this returns.

    replication_factor: for topics that do not have their own.
    Raises KafkaUnavailableError when the brokers do not create them in time.
    """
    created = {topic.name for topic in topics}
    new = []
    for topic in topics:
        replicas = topic.replication_factor or replication_factor
        config = REPLICATED | topic.config if replicas > 1 else topic.config
        new.append(NewTopic(topic.name, topic.partitions, replicas, config=config))
    for name, future in admin.create_topics(new, operation_timeout=ADMIN_TIMEOUT_S).items():
        try:
            future.result(ADMIN_TIMEOUT_S * 2)
        except KafkaException as error:
            if error.args[0].name() != ALREADY_EXISTS:
                message = f"Cannot create topic {name} ({error}). Hint: check the brokers' logs."
                raise KafkaUnavailableError(message) from error
            created.remove(name)
        except TimeoutError as error:
            message = f"Cannot create topic {name}: the brokers do not respond in time. Hint: check that they are up."
            raise KafkaUnavailableError(message) from error
    for topic in topics:
        _wait_until_known(admin, topic.name, with_leaders=topic.name in created)


def _wait_until_known(admin: AdminClient, topic: str, *, with_leaders: bool) -> None:
    # The brokers receive the metadata of a new topic after the controller acknowledges it, seconds later if they are throttled.
    def is_known() -> bool:
        found = _metadata(admin, topic)
        return found is not None and not (
            with_leaders and any(partition.leader < 0 for partition in found.partitions.values())
        )

    if not wait_for(is_known, timeout_s=ADMIN_TIMEOUT_S, poll_s=POLL_INTERVAL_S):
        raise KafkaUnavailableError(
            f"Topic {topic} was created, but has no leader after {ADMIN_TIMEOUT_S:.0f} s. Hint: check the brokers' logs."
        )


def source_topics(
    source_topic: str,
    partitions: int,
    replication_factor: int | None = None,
    retention_ms: int | None = None,
    flush_messages: int = 0,
    *,
    compacted: bool = False,
) -> list[Topic]:
    """Return a source topic and its dead-letter topic; their records are kept for ever unless `retention_ms` is given.

    flush_messages: the number of records of a partition after which a broker syncs its file to the disk; 0: the brokers' default,
        which leaves that to the operating system.
    compacted: the source topic keeps only the newest record of each key.
    """
    config = FOREVER if retention_ms is None else FOREVER | {"retention.ms": str(retention_ms)}
    if flush_messages:
        config = config | {"flush.messages": str(flush_messages)}
    of_source = COMPACTED if compacted else config
    return [
        Topic(source_topic, partitions, of_source, replication_factor),
        Topic(dead_letter_topic(source_topic), partitions, config, replication_factor),
    ]


def changelog(name: str, partitions: int, replication_factor: int | None = None) -> Topic:
    """Return a changelog topic; `partitions` is the source topic's."""
    return Topic(name, partitions, COMPACTED, replication_factor)
