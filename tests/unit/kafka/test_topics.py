"""Metadata requests do not change the cluster."""

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from include.kafka.topics import admin_client, partition_count


def test_looking_up_a_topic_does_not_create_it() -> None:
    # librdkafka's own broker, in this process: it makes topics that are asked for, as Kafka does by default.
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1"})
    broker = next(iter(cluster.list_topics(timeout=10).brokers.values()))
    address = f"{broker.host}:{broker.port}"

    assert partition_count(admin_client(address), "asked-for") is None

    plain = AdminClient({"bootstrap.servers": address})
    assert "asked-for" not in plain.list_topics(timeout=10).topics
    plain.list_topics("asked-for", timeout=10)
    assert "asked-for" in plain.list_topics(timeout=10).topics, "this broker does make topics"
