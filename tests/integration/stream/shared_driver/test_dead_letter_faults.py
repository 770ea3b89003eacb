"""Dead letters that cannot be written, records that are too large, records of other programs, and junk: the folds continue."""

import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import MAX_MESSAGE_BYTES, dead_letter_topic, max_message_bytes
from include.kafka.wire_format import header
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.stream.query_reports import query_status
from spark_jobs.folding.schema_cache import MAX_HEADERS_AHEAD
from spark_jobs.streaming.outputs.dead_letter_records import max_payload_bytes
from tests.support.balance_copy import with_balance_copy
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource, make_topics, records_of
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

MODEL = "lettered"
CHANGELOG = f"{MODEL}.v1.changelog"
DEAD_LETTERS = dead_letter_topic(MODEL)
# A source topic accepts it, but not with the headers of a dead letter.
LARGE_BYTES = 1_048_430
KEY = b"customer-1"
LONG_KEY = b"k" * 400

Place = tuple[int, int]


@pytest.fixture(scope="module")
def settings(stream_stack: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a read model on topics of its own: no other test sees these dead letters."""
    make_topics(stream_stack, MODEL)
    return with_balance_copy(stream_stack, MODEL, tmp_path_factory.mktemp("read_models"))


@pytest.fixture(scope="module")
def shared_driver(settings: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(settings) as driver:
        yield driver


@pytest.fixture(scope="module")
def source(settings: Settings) -> EventSource:
    return EventSource(settings, MODEL)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger()


class RawSource:
    """Appends records of any size and returns where each stands."""

    def __init__(self, settings: Settings) -> None:
        self._producer = Producer(
            {
                **settings.kafka_connection.client_settings,
                "partitioner": "murmur2_random",
                "message.max.bytes": 2_000_000,
            }
        )

    def append(self, topic: str, key: bytes | None, value: bytes | None, partition: int = -1) -> Place:
        """Append one record, and return its partition and offset."""
        placed: list[Place] = []

        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            placed.append((message.partition() or 0, message.offset() or 0))

        self._producer.produce(topic, value, key, partition=partition, on_delivery=delivered)
        assert self._producer.flush(30) == 0
        return placed[0]


def letters(settings: Settings) -> dict[Place, Message]:
    """Return every dead letter by the place of its source record; each must have been written once."""
    found: dict[Place, Message] = {}
    for message in records_of(settings, DEAD_LETTERS):
        headers = headers_of(message)
        if "source_offset" in headers:
            place = int(headers["source_partition"]), int(headers["source_offset"])
            assert place not in found, "written twice"
            found[place] = message
    return found


def headers_of(message: Message) -> dict[str, str]:
    return {name: bytes(value).decode() for name, value in dict(message.headers() or []).items()}  # type: ignore[arg-type]  # bytes


def test_letters_are_written_behind_records_of_other_programs_and_records_that_are_too_large(
    settings: Settings, shared_driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    raw = RawSource(settings)
    for partition in range(settings.topics.partitions):
        raw.append(DEAD_LETTERS, b"another", b"program", partition)
    large = b"\x01" * LARGE_BYTES
    limit = max_message_bytes(AdminClient(settings.kafka_connection.client_settings), DEAD_LETTERS)
    largest = b"\x01" * (max_payload_bytes(MODEL, limit) - len(KEY))
    beside_long_key = large[len(LONG_KEY) :]
    referred, with_long_key = raw.append(MODEL, KEY, large), raw.append(MODEL, LONG_KEY, beside_long_key)
    whole, too_large = raw.append(MODEL, KEY, largest), raw.append(MODEL, KEY, largest + b"\x01")
    last = raw.append(MODEL, KEY, b"garbage")
    source.append(ledger.random_events(200))

    shared_driver.ensure_running()

    wait_until(lambda: ledger.is_folded(settings, CHANGELOG), "the events are folded")
    written = {referred, with_long_key, whole, too_large, last}
    wait_until(lambda: letters(settings).keys() == written, "every bad record is a dead letter", poll_s=1.0)
    found = letters(settings)
    assert (found[last].key(), found[last].value()) == (KEY, b"garbage")
    assert found[whole].value() == largest
    assert (found[referred].key(), found[referred].value()) == (KEY, None)
    assert (found[too_large].key(), found[too_large].value()) == (KEY, None)
    assert (found[with_long_key].key(), found[with_long_key].value()) == (None, None)
    assert headers_of(found[with_long_key]) == {
        "reason": "wrong_magic",
        "source_topic": MODEL,
        "source_partition": str(with_long_key[0]),
        "source_offset": str(with_long_key[1]),
        "key_bytes": str(len(LONG_KEY)),
        "key_sha256": hashlib.sha256(LONG_KEY).hexdigest(),
        "value_bytes": str(len(beside_long_key)),
        "value_sha256": hashlib.sha256(beside_long_key).hexdigest(),
    }
    assert stuck_topics(settings) == []


def stuck_topics(settings: Settings) -> list[str]:
    return [source.topic for source in read_stream_status(settings).sources if source.stuck_for_s > 0]


def test_letters_that_cannot_be_written_are_reported_and_the_folds_continue(
    settings: Settings, shared_driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    shared_driver.ensure_running()
    before = len(letters(settings))
    set_max_message_bytes(settings, 100)
    source.append_raw(None, b"garbage")
    source.flush()

    wait_until(
        lambda: stuck_topics(settings) == [MODEL],
        "the status says that the letters are stuck",
    )
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(settings, CHANGELOG), "the events are folded nevertheless")
    ledger.assert_exact(settings, CHANGELOG)

    set_max_message_bytes(settings, None)
    wait_until(lambda: len(letters(settings)) == before + 1, "the letter is written once it can be")
    assert shared_driver.process.poll() is None


def set_max_message_bytes(settings: Settings, limit: int | None) -> None:
    """Set the largest record that the dead-letter topic accepts; None: the default."""
    operation = AlterConfigOpType.DELETE if limit is None else AlterConfigOpType.SET
    entry = ConfigEntry(MAX_MESSAGE_BYTES, str(limit), incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, DEAD_LETTERS, incremental_configs=[entry])
    admin = AdminClient(settings.kafka_connection.client_settings)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_a_new_schema_id_is_learned_behind_more_junk_than_is_looked_up_at_once(
    settings: Settings, shared_driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    shared_driver.ensure_running()
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(settings, CHANGELOG), "the events of the known schema are folded")
    process, stops = shared_driver.process, restarts(settings)
    schema = event_schema("FundsAdded").parsed()
    schema["fields"].append({"name": "shop", "type": "string", "default": "none"})
    newer_id = source.registry.register(
        MODEL, RecordSchema.parse(json.dumps(schema), "FundsAdded with a shop")
    )

    for number in range(4 * MAX_HEADERS_AHEAD):
        source.append_raw(str(number).encode(), b"\x01" + number.to_bytes(4))
    event = ledger.add(FundsAdded(customerId="customer-1", amount=Decimal("1.25")))
    value = source.serializer.serialize(event)
    source.append_raw(KEY, header(newer_id) + value[5:] + b"\x06web")
    source.append(ledger.random_events(200))

    wait_until(lambda: ledger.is_folded(settings, CHANGELOG), "the event of the new schema is folded")
    ledger.assert_exact(settings, CHANGELOG)
    wait_until(lambda: restarts(settings) > stops, "the restart is reported")
    assert restarts(settings) == stops + 1, "the id is learned at the first stop"
    assert process.poll() is None


def restarts(settings: Settings) -> int:
    status = query_status(settings.kafka_connection, MODEL, 1)
    assert status is not None
    return status.restarts
