"""A version's changelog topic as it is now: which topic that is, and where it ends."""

from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicCollection

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.topics import ADMIN_TIMEOUT_S, admin_client
from include.position import Offsets

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"


@dataclass(frozen=True)
class ChangelogTopic:
    """A changelog topic.

    topic_id: Kafka's id of it; one that was deleted and made anew has another, and its offsets mean something else.
    ends: partition -> offset of the next record.
    """

    topic_id: str
    ends: Offsets


def changelog_now(bootstrap_servers: str, name: str) -> ChangelogTopic | None:
    """Return the topic of this name, or None when there is none yet; raises KafkaUnavailableError.

    Its id is asked for before its ends: where it is made anew in between, the id is the old one's, which the next look
    finds to be another.
    """
    admin = admin_client(bootstrap_servers)
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=ADMIN_TIMEOUT_S)
    try:
        topic = asked[name].result(ADMIN_TIMEOUT_S * 2)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and error.args[0].name() == UNKNOWN_TOPIC:
            return None
        message = (
            f"Kafka does not say what topic {name} is ({error}): is the broker up, and the address right?"
        )
        raise KafkaUnavailableError(message) from error
    consumer = log_consumer(bootstrap_servers)
    try:
        ends = Offsets.of_ends(end_offsets(consumer, name, len(topic.partitions)))
        return ChangelogTopic(str(topic.topic_id), ends)
    finally:
        consumer.close()
