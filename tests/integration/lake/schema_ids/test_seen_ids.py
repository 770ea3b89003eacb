"""The schema ids of a topic's records are found, and a process reads a record's header once."""

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.topics import Topic, admin_client, ensure_topics
from include.kafka.wire_format import header
from include.position import Offsets
from include.settings import Settings
from spark_jobs.folding import seen_ids
from spark_jobs.folding.seen_ids import schema_ids_in
from spark_jobs.folding.topic_records import topic_records

PARTITIONS = 2


class SeenTopic:
    """A topic whose records have schema ids.

    starts: the offsets from which its records were read, one for each time; None is the first offset.
    """

    def __init__(
        self, settings: Settings, spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._bootstrap = settings.kafka.bootstrap_servers
        self._spark = spark
        self.name = name
        self.starts: list[Offsets | None] = []
        ensure_topics(admin_client(self._bootstrap), [Topic(name, PARTITIONS)], 1)

        def observed(*arguments: object) -> object:
            self.starts.append(arguments[-1])  # type: ignore[arg-type]  # the offsets to begin at
            return topic_records(*arguments)  # type: ignore[arg-type]  # what it is called with

        monkeypatch.setattr(seen_ids, "topic_records", observed)

    def append(self, *values: bytes | None, partition: int = 0) -> None:
        """Append records to a partition."""
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for value in values:
            producer.produce(self.name, value, partition=partition)
        assert producer.flush(30) == 0

    def ends(self) -> Offsets:
        """Return the end offsets."""
        return Offsets.of_ends(end_offsets(log_consumer(self._bootstrap), self.name, PARTITIONS))

    def ids(self, since: Offsets | None = None) -> set[int]:
        """Return the ids up to the present end."""
        return schema_ids_in(self._spark, self._bootstrap, self.name, self.ends(), since)


@pytest.fixture
def topic(
    settings: Settings,
    lake_spark: SparkSession,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> SeenTopic:
    """A topic of the test's own."""
    name = request.node.name.replace("_", "-")
    return SeenTopic(settings, lake_spark, name, monkeypatch)


def test_only_new_records_are_read_again(topic: SeenTopic) -> None:
    topic.append(None, b"", b"\x01junk", header(7)[:4], header(7) + b"payload", header(7))
    assert topic.ids() == {7}
    first = topic.ends()
    assert topic.ids() == {7}
    topic.append(header(8), partition=1)

    assert topic.ids() == {7, 8}

    assert topic.starts == [None, first]


def test_records_that_were_left_out_are_read_later(topic: SeenTopic) -> None:
    topic.append(header(7))
    first = topic.ends()
    topic.append(header(8))
    assert topic.ids(since=first) == {8}

    assert topic.ids() == {7, 8}
    assert topic.ids(since=first) == {7, 8}

    assert topic.starts == [first, None]


def test_another_topic_of_the_same_name_has_its_own_ids(topic: SeenTopic, settings: Settings) -> None:
    topic.append(header(7))
    assert topic.ids() == {7}
    admin = admin_client(settings.kafka.bootstrap_servers)
    name = topic.name
    for deleted in admin.delete_topics([name], operation_timeout=30).values():
        deleted.result()
    ensure_topics(admin, [Topic(name, PARTITIONS)], 1)
    topic.append(header(8))

    assert topic.ids() == {8}
