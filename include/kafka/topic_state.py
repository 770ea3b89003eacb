"""The current state of a topic: its id and its end offsets."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import KafkaException, TopicCollection

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer, offset_bounds
from include.kafka.record_ends import unread_ends
from include.kafka.topics import ADMIN_TIMEOUT_S, admin_client
from include.position import Offsets
from include.settings import KafkaConnection

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"


@dataclass(frozen=True)
class TopicState:
    """A topic as of now.

    topic_id: Kafka's id of the topic. A topic that was deleted and recreated has another id and other offsets.
    ends: partition -> offset of the next record. starts: partition -> offset of the first record that has not been deleted.
    """

    topic_id: str
    ends: Offsets
    starts: Offsets = field(default_factory=Offsets)


def topic_state(kafka: KafkaConnection, name: str) -> TopicState | None:
    """Return the topic of this name, or None when it does not exist yet; raises KafkaUnavailableError.

    The id is read before the end offsets: if the topic is recreated in between, the id is outdated, which the next
    call detects.
    """
    admin = admin_client(kafka)
    futures = admin.describe_topics(TopicCollection([name]), request_timeout=ADMIN_TIMEOUT_S)
    try:
        topic = futures[name].result(ADMIN_TIMEOUT_S * 2)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and error.args[0].name() == UNKNOWN_TOPIC:
            return None
        message = f"Cannot describe topic {name} ({error}). Hint: check that the brokers are up and their address is right."
        raise KafkaUnavailableError(message) from error
    with closing(log_consumer(kafka)) as consumer:
        bounds = offset_bounds(consumer, name, len(topic.partitions))
        starts, ends = (Offsets.of_ends(bound[side] for bound in bounds) for side in (0, 1))
        return TopicState(str(topic.topic_id), ends, starts)


def source_state(kafka: KafkaConnection, topic: str) -> TopicState:
    """Return the state of a source topic; raises KafkaUnavailableError when the broker does not answer or the topic does not exist."""
    state = topic_state(kafka, topic)
    if state is None:
        message = f"Topic {topic} does not exist: start the stream driver on this Kafka first."
        raise KafkaUnavailableError(message)
    return state


def unread_ends_of(kafka: KafkaConnection, topic: str, ends: Offsets, read: Mapping[int, int]) -> Offsets:
    """Return the end offsets of a topic, those above `read` lowered to where the records end; raises KafkaUnavailableError."""
    if all(read.get(partition, 0) >= end for partition, end in ends.items()):
        return ends
    with closing(log_consumer(kafka)) as consumer:
        return unread_ends(consumer, topic, ends, read)


def ends_if_known(kafka: KafkaConnection, name: str, read: Mapping[int, int] | None = None) -> Offsets | None:
    """Return the end offsets of a topic, or None when it does not exist or Kafka does not respond: for what is only shown.

    read: end offsets above these are lowered to where the records end.
    """
    try:
        topic = topic_state(kafka, name)
        if topic is None or read is None:
            return None if topic is None else topic.ends
        return unread_ends_of(kafka, name, topic.ends, read)
    except KafkaUnavailableError:
        return None
