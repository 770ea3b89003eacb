"""Loading appends each basket exactly once, even after an interrupted load."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from demo.baskets.dataset import Basket, read_baskets
from demo.baskets.loading import load, read_ledger
from include.kafka.log_reading import log_consumer, read_tail
from include.settings import Settings
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def baskets() -> tuple[Basket, ...]:
    return read_baskets().events[:2000]


@pytest.fixture
def topic(settings: Settings, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"loading-{request.node.name}"[:200]
    yield name
    AdminClient({**settings.kafka_connection.client_settings, "log_level": 0}).delete_topics([name])


def keys(settings: Settings, topic: str) -> list[str]:
    consumer = log_consumer(settings.kafka_connection)
    found = [
        (message.key() or b"").decode()
        for partition in range(settings.topics.partitions)
        for message in read_tail(consumer, topic, partition)
    ]
    consumer.close()
    return found


def test_every_basket_becomes_one_event_under_its_household(
    settings: Settings, topic: str, baskets: tuple[Basket, ...]
) -> None:
    result = load(settings, topic, baskets)

    assert (result.appended, result.present) == (2000, 0)
    assert sorted(keys(settings, topic)) == sorted(str(basket.household_id) for basket in baskets)


def test_a_second_load_appends_nothing(settings: Settings, topic: str, baskets: tuple[Basket, ...]) -> None:
    load(settings, topic, baskets)

    result = load(settings, topic, baskets)

    assert (result.appended, result.present) == (0, 2000)
    assert len(keys(settings, topic)) == 2000


def test_a_load_continues_where_an_interrupted_one_stopped(
    settings: Settings, topic: str, baskets: tuple[Basket, ...]
) -> None:
    class Interruption(Exception):  # noqa: N818 - stands in for KeyboardInterrupt
        pass

    calls = 0

    def interrupt(_acknowledged: int) -> None:
        # The third call comes after the first 500 of 2,000 events; the producer sends while this waits.
        nonlocal calls
        calls += 1
        if calls == 3:
            wait_until(lambda: keys(settings, topic), "some events are in the log")
            raise Interruption

    with pytest.raises(Interruption):
        load(settings, topic, baskets, interrupt)

    result = load(settings, topic, baskets)

    assert 0 < result.present < 2000
    ledger = read_ledger(settings.kafka_connection, settings.registry.connection, topic)
    assert ledger.basket_ids == {f"basket-{basket.basket_id}" for basket in baskets}
    assert ledger.repeated == 0


def test_invalid_records_on_the_topic_do_not_stop_a_load(
    settings: Settings, topic: str, baskets: tuple[Basket, ...]
) -> None:
    load(settings, topic, baskets[:10])
    producer = Producer({**settings.kafka_connection.client_settings, "log_level": 0})
    for invalid in (b"", b"\x00", b"\x00\x00\x0f\x42\x3fxyz", b"\xff" * 40, b"\x00\x00\x00\x00\x01\x02"):
        producer.produce(topic, invalid, b"key")
    producer.produce(topic, None, b"key")
    assert producer.flush(30) == 0

    result = load(settings, topic, baskets[:20])

    assert (result.appended, result.present) == (10, 10)
