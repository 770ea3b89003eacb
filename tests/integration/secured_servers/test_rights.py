"""Each right that docs/how-to/own-servers.md lists is needed: without it, a part of Foldlake fails, and with all of them it works."""

import uuid
from collections.abc import Callable
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # not in its __all__

from include.access.api_key import create_key
from include.access.caller import Scope
from include.access.key_topic import KeyTopic
from include.errors import KafkaUnavailableError
from include.kafka.topics import COMPACTED, Topic, admin_client, ensure_topics, max_message_bytes
from include.nodes.routing_table import GROUP
from include.rebuild.version_cleanup import _delete_topic
from include.settings import KafkaConnection, Settings
from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import RIGHTS, SecuredBroker

PASSWORD = "Zw3-rights-word"  # noqa: S105 - of a server of these tests
Kafka = KafkaConnection
JOIN_S = 15.0


def new_topic(kafka: Kafka) -> str:
    """Create a topic, as for a new version."""
    name = f"rights-{uuid.uuid4().hex}.v1.changelog"
    ensure_topics(admin_client(kafka), [Topic(name, 1, COMPACTED)], 1)
    return name


def join(kafka: Kafka) -> None:
    """Join the group of the query nodes, as a node does; raises KafkaException."""
    settings = {**kafka.client_settings, "group.id": GROUP, "log_level": 0}
    with closing(Consumer(settings)) as consumer:
        joined: list[object] = []
        consumer.subscribe(["api-keys"], on_assign=lambda _, partitions: joined.append(partitions))
        while not joined:
            message = consumer.poll(JOIN_S)
            if message is None and not joined:
                raise TimeoutError
            if message is not None and message.error():
                raise KafkaException(message.error())


# What a part of Foldlake does that needs an operation on a resource, with the name of a topic that exists.
PARTS: dict[tuple[ResourceType, str], Callable[[Kafka, str], object]] = {
    (ResourceType.TOPIC, "READ"): lambda kafka, _: KeyTopic(kafka, 1).read(),
    (ResourceType.TOPIC, "WRITE"): lambda kafka, _: KeyTopic(kafka, 1).change(
        lambda _: [create_key("rights", frozenset({Scope.READ}))[0]]
    ),
    (ResourceType.TOPIC, "DESCRIBE_CONFIGS"): lambda kafka, topic: max_message_bytes(
        admin_client(kafka), topic
    ),
    (ResourceType.TOPIC, "CREATE"): lambda kafka, _: new_topic(kafka),
    (ResourceType.TOPIC, "DELETE"): _delete_topic,
    (ResourceType.GROUP, "READ"): lambda kafka, _: join(kafka),
    (ResourceType.TRANSACTIONAL_ID, "WRITE"): lambda kafka, _: KeyTopic(kafka, 1).change(lambda _: ()),
}
LISTED = [(kind, operation) for kind, _, _, operations in RIGHTS for operation in operations]


@pytest.fixture(scope="module")
def user(broker: SecuredBroker, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> "Users":
    """Return the connection of a new user without one of the rights; None: with all of them."""
    home = tmp_path_factory.mktemp("rights")

    def connection(without: tuple[ResourceType, str] | None) -> Kafka:
        name = uuid.uuid4().hex
        broker.add_user(name, PASSWORD)
        broker.grant(name, without=without)
        return Settings.of(
            home=home,
            kafka_bootstrap=f"127.0.0.1:{broker.port}",
            kafka_security_protocol="SASL_SSL",
            kafka_sasl_mechanism="SCRAM-SHA-256",
            kafka_sasl_username=name,
            kafka_sasl_password=PASSWORD,
            kafka_ssl_ca_file=authority.ca_file,
        ).kafka_connection

    return connection


Users = Callable[[tuple[ResourceType, str] | None], Kafka]


@pytest.fixture(scope="module")
def complete(user: Users) -> Kafka:
    """The connection of a user with all rights, after whom every topic exists."""
    found = user(None)
    KeyTopic(found, 1).change(lambda _: [create_key("first", frozenset({Scope.READ}))[0]])
    return found


@pytest.fixture(autouse=True)
def no_refusal_for_later_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of later tests in this process would name the refusals of these."""
    monkeypatch.setattr("include.errors._NewestRefusal.text", "")


def test_each_listed_right_has_a_part_that_needs_it() -> None:
    assert set(LISTED) == set(PARTS)


@pytest.mark.parametrize("right", LISTED, ids=lambda right: f"{right[0].name.lower()}-{right[1].lower()}")
def test_a_right_is_needed(user: Users, complete: Kafka, right: tuple[ResourceType, str]) -> None:
    topic = new_topic(complete)

    with pytest.raises((KafkaUnavailableError, KafkaException), match=r"(?i)auth"):
        PARTS[right](user(right), topic)

    PARTS[right](complete, topic)
