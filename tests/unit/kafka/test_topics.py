"""Metadata requests do not change the cluster; a topic that is replicated loses no acknowledged record with one broker."""

from unittest.mock import Mock

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from include.kafka import topics
from include.kafka.topics import Topic, admin_client, ensure_topics, partition_count
from include.settings import KafkaConnection


@pytest.mark.parametrize(
    ("default", "own", "expected"), [(1, None, None), (3, None, "2"), (3, 1, None), (1, 2, "2")]
)
def test_replicated_topic_needs_two_brokers_for_a_write(
    monkeypatch: pytest.MonkeyPatch, default: int, own: int | None, expected: str | None
) -> None:
    # The machine of the tests has one broker, which cannot replicate.
    monkeypatch.setattr(topics, "_wait_until_known", Mock())
    admin = Mock()
    admin.create_topics.return_value = {}

    ensure_topics(admin, [Topic("t", 4, {"cleanup.policy": "compact"}, own)], default)

    ((topic,),) = admin.create_topics.call_args.args
    assert topic.config.get("min.insync.replicas") == expected
    assert topic.config.get("unclean.leader.election.enable") == (expected and "false")
    assert topic.config["cleanup.policy"] == "compact"


def test_looking_up_a_topic_does_not_create_it() -> None:
    # librdkafka's own broker, in this process: it makes topics that are asked for, as Kafka does by default.
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1"})
    broker = next(iter(cluster.list_topics(timeout=10).brokers.values()))
    address = f"{broker.host}:{broker.port}"

    assert partition_count(admin_client(KafkaConnection(address)), "asked-for") is None

    plain = AdminClient({"bootstrap.servers": address})
    assert "asked-for" not in plain.list_topics(timeout=10).topics
    plain.list_topics("asked-for", timeout=10)
    assert "asked-for" in plain.list_topics(timeout=10).topics, "this broker does make topics"
