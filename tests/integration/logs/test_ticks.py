"""A tick is written whole and once, or not at all."""

import pytest

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer
from include.kafka.origins import newest_tick
from include.kafka.topics import admin_client, ensure_topics, source_topics
from include.settings import Settings
from spark_jobs.streaming.specs.periodic_emissions import TickWriter
from tests.support.stream_process import records_of

TOPIC, PARTITIONS = "ticks-of-a-test", 2
RECORDS = [(f"key-{number}".encode(), b"value") for number in range(50)]


@pytest.fixture
def topic(settings: Settings) -> str:
    ensure_topics(admin_client(settings.kafka_connection), source_topics(TOPIC, PARTITIONS), 1)
    return TOPIC


def test_a_tick_that_its_writer_did_not_finish_is_not_there_and_its_successor_excludes_it(
    settings: Settings, topic: str
) -> None:
    kafka = settings.kafka_connection
    consumer = log_consumer(kafka)
    first = TickWriter(kafka, "test", topic)
    assert newest_tick(consumer, topic, PARTITIONS) is None
    assert first.write(1_000, 1, RECORDS) == len(RECORDS)

    def interrupted() -> object:
        yield from RECORDS
        # As if the first writer was killed, or hung, when it had sent all records and not committed them.
        first._producer.flush(30)
        second.append(TickWriter(kafka, "test", topic))

    second: list[TickWriter] = []
    with pytest.raises(KafkaUnavailableError, match="Tick 2000 was not written"):
        first.write(2_000, 1, interrupted())  # type: ignore[arg-type]

    assert newest_tick(consumer, topic, PARTITIONS) == 1_000
    second[0].write(3_000, 1, RECORDS[:1])
    assert newest_tick(consumer, topic, PARTITIONS) == 3_000
    assert len(records_of(settings, topic)) == len(RECORDS) + 1
    consumer.close()
