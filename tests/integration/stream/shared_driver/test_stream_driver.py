"""The stream driver on realistic input: bad records, new schemas, a second read model, kills. Every balance is exact, and each bad
record becomes one dead letter.
"""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from zlib import crc32

import pytest
from confluent_kafka import Message, Producer, murmur2

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.load import read_model
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import header
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.stream.checkpoints import checkpoint_path
from include.stream.query_reports import CONTINUOUS, query_status
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage
from tests.support.faults.foreign_writers import ForeignWriter, decimal, timestamp, with_types
from tests.support.stream_events import BALANCE, CHANGELOG, RANDOM, Ledger, random_event
from tests.support.stream_process import EventSource, records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DEAD_LETTERS = f"{BALANCE.source_topic}.dead-letter"
READ_MODELS = Path(__file__).parents[3] / "support" / "read_models"
DEPOSITS_CHANGELOG = "deposits-per-day.v1.changelog"


@pytest.fixture(scope="module")
def settings(stream_stack: Settings) -> Settings:
    """Settings with a second read model, which is a single file."""
    return stream_stack.changed(read_models_dir=READ_MODELS)


@pytest.fixture(scope="module")
def shared_driver(settings: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(settings) as driver:
        yield driver


@pytest.fixture
def driver(shared_driver: SharedDriver) -> SharedDriver:
    """The shared driver of these tests, restarted if an earlier test has killed it."""
    shared_driver.ensure_running()
    return shared_driver


@pytest.fixture(scope="module")
def source(settings: Settings) -> EventSource:
    return EventSource(settings, BALANCE.source_topic)


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> Ledger:
    return Ledger(settings)


def position_of(dead_letter: Message) -> tuple[object, object]:
    """Return the position of the record that became this dead letter."""
    headers = dict(dead_letter.headers() or [])
    return headers["source_partition"], headers["source_offset"]


def reasons(settings: Settings) -> list[str]:
    """Return the reason of every dead letter, in the order in which they were written."""
    found = sorted(records_of(settings, DEAD_LETTERS), key=lambda message: message.timestamp()[1])
    return [str(dict(message.headers() or [])["reason"], "utf-8") for message in found]  # type: ignore[arg-type]  # bytes


def bad_records(source: EventSource) -> list[tuple[str, bytes | None, bytes | None]]:
    """Return 100 bad records as (expected reason, key, value)."""
    good = source.serializer.serialize(random_event())
    other = source.serializer.serialize(FundsAdded(customerId="another-customer", amount=Decimal("1.00")))
    kinds: list[tuple[str, bytes | None, bytes | None]] = [
        ("null_key", None, good),
        ("null_value", b"customer-1", None),
        ("wrong_magic", b"customer-1", b"\x07" + good[1:]),
        ("wrong_magic", b"customer-1", RANDOM.randbytes(40).replace(b"\x00", b"\x01")),
        ("wrong_magic", b"customer-1", b"\x00\x00"),
        ("unknown_schema_id", b"customer-1", header(900_001) + good[5:]),
        ("unknown_schema_id", b"customer-1", header(RANDOM.randrange(2**20, 2**30)) + good[5:]),
        ("undecodable_payload", b"customer-1", good[: len(good) // 2]),
        ("undecodable_payload", b"customer-1", good[:5]),
        ("undecodable_payload", b"customer-1", good[:5] + b"\xfe\xff\xff\xff\x0f" * 5),
    ]
    return [*kinds * 9, *[("invalid_key", b"customer-1", other)] * 10]


def test_good_events_are_folded_and_each_bad_record_becomes_one_dead_letter(
    settings: Settings, shared_driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    # Stopped, so that it catches up with the events in batches.
    shared_driver.stop()
    earlier = {position_of(found) for found in records_of(settings, DEAD_LETTERS)}
    bad = bad_records(source)
    records: list[tuple[bytes | None, bytes | None]] = [(key, value) for _, key, value in bad]
    good = ledger.random_events(10_000 - len(bad))
    records += [(event.customerId.encode(), source.serializer.serialize(event)) for event in good]
    RANDOM.shuffle(records)
    for key, value in records:
        source.append_raw(key, value)
    source.flush()
    expected = Counter(reason for reason, _, _ in bad)

    shared_driver.ensure_running()

    wait_until(lambda: ledger.is_folded(settings), "all good events are folded")
    wait_until(
        lambda: len(records_of(settings, DEAD_LETTERS)) >= len(earlier) + len(bad),
        "all bad records are dead letters",
    )
    dead_letters = [
        found for found in records_of(settings, DEAD_LETTERS) if position_of(found) not in earlier
    ]
    found = [dict(dead_letter.headers() or []) for dead_letter in dead_letters]
    assert Counter(str(headers["reason"], "utf-8") for headers in found) == expected  # type: ignore[arg-type]  # bytes
    positions = {(h["source_partition"], h["source_offset"]) for h in found}
    assert len(positions) == len(bad)
    assert {h["source_topic"] for h in found} == {b"balance"}
    ledger.assert_exact(settings)
    wait_until(lambda: read_stream_status(settings).state == "running", "the driver reports real time")
    status = read_stream_status(settings)
    assert status.events_behind == 0
    assert status.dead_letters == len(earlier) + len(bad)


@pytest.mark.usefixtures("driver")
def test_first_start_creates_version_one_live(settings: Settings) -> None:
    def first_version() -> list[tuple[int, Stage, str]]:
        record = VersionRegistry(settings.kafka_connection).read()["balance"]
        return [(v.number, v.stage, v.changelog_topic) for v in record.versions]

    wait_until(lambda: first_version() == [(1, Stage.LIVE, CHANGELOG)], "version 1 is live")


@pytest.mark.usefixtures("driver")
def test_second_read_model_in_one_new_file_is_folded_beside_the_first(
    settings: Settings, source: EventSource, ledger: Ledger
) -> None:
    source.append(ledger.random_events(2_000))
    deposited = [FundsAdded(customerId="diarist", amount=Decimal(cents) / 100) for cents in (500, 1_250, 75)]
    source.append([ledger.add(event) for event in deposited])
    model = read_model("deposits-per-day", (READ_MODELS,))
    days = Counter(f"diarist/{event.occurredOn:%Y-%m-%d}" for event in deposited)

    def deposits() -> dict[str, int]:
        found = states(settings, model, DEPOSITS_CHANGELOG)
        return {key: r.state["deposits"] for key, r in found.items() if key.startswith("diarist/")}

    wait_until(lambda: deposits() == dict(days), "the deposits are folded", poll_s=1.0)
    wait_until(lambda: ledger.is_folded(settings), "the balances are folded")
    ledger.assert_exact(settings)
    found = states(settings, model, DEPOSITS_CHANGELOG)
    assert max(r.state["largest"] for key, r in found.items() if "diarist" in key) == Decimal("12.50")
    registered = VersionRegistry(settings.kafka_connection).read().keys()
    assert registered >= {"balance", "deposits-per-day"}


def test_event_of_a_new_schema_version_is_folded_without_a_manual_restart(
    settings: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    schema = event_schema("FundsAdded").parsed()
    schema["fields"].append({"name": "channel", "type": "string", "default": "till"})
    newer = RecordSchema.parse(json.dumps(schema), "FundsAdded with a channel")
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(settings), "the events of the old schema are folded")
    process = driver.process
    newer_id = source.registry.register(BALANCE.source_topic, newer)
    for number in range(300):
        event = ledger.add(FundsAdded(customerId=f"customer-{number % 50}", amount=Decimal("1.25")))
        value = source.serializer.serialize(event)
        source.append_raw(event.customerId.encode(), header(newer_id) + value[5:] + b"\x06web")
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(settings), "both versions are folded")
    ledger.assert_exact(settings)
    assert process.poll() is None


@pytest.mark.usefixtures("driver")
def test_writer_with_another_logical_type_is_converted_exactly_or_not_folded(
    settings: Settings, source: EventSource, ledger: Ledger
) -> None:
    earlier = len(records_of(settings, DEAD_LETTERS))
    exact = (
        with_types("FundsAdded", amount=decimal(18, 1)),
        with_types("FundsAdded", occurredOn=timestamp("micros")),
    )
    event = FundsAdded(customerId="other-writer", amount=Decimal("5.0"))
    for schema in exact:
        ForeignWriter(source, schema).append(vars(event))
        ledger.add(event)
    # The registry's rule BACKWARD takes this schema for a compatible one; 5.0000 was folded as 500.00.
    ForeignWriter(source, with_types("FundsAdded", amount=decimal(18, 4))).append(vars(event))

    wait_until(lambda: ledger.is_folded(settings), "the exact ones are folded")
    wait_until(lambda: len(reasons(settings)) > earlier, "the other is a dead letter")
    ledger.assert_exact(settings)
    assert reasons(settings)[earlier:] == ["incompatible_schema"]


@pytest.mark.usefixtures("driver")
def test_events_of_another_partitioner_are_dead_letters(
    settings: Settings, source: EventSource, ledger: Ledger
) -> None:
    earlier = len(records_of(settings, DEAD_LETTERS))
    # Partitions are those of CRC-32, the default of librdkafka.
    producer = Producer(settings.kafka_connection.client_settings)
    misplaced = 0
    for event in [random_event(50) for _ in range(200)]:
        key, partitions = event.customerId.encode(), settings.topics.partitions
        if crc32(key) % partitions == murmur2(key, partitions):
            ledger.add(event)
        else:
            misplaced += 1
        producer.produce(source.topic, source.serializer.serialize(event), key)
    assert producer.flush(30) == 0

    wait_until(lambda: len(reasons(settings)) >= earlier + misplaced, "misplaced events are dead letters")
    wait_until(lambda: ledger.is_folded(settings), "the others are folded")
    ledger.assert_exact(settings)
    assert reasons(settings)[earlier:] == ["wrong_partition"] * misplaced


@pytest.mark.usefixtures("driver")
def test_events_that_no_reader_can_represent_are_dead_letters(
    settings: Settings, source: EventSource, ledger: Ledger
) -> None:
    earlier = len(records_of(settings, DEAD_LETTERS))
    schema = event_schema("FundsAdded")
    writer = ForeignWriter(source, schema)
    event = vars(random_event())
    # Microseconds where milliseconds are expected: the year 57879.
    writer.append(event | {"occurredOn": int(event["occurredOn"].timestamp() * 1_000_000)})
    writer.append(event | {"occurredOn": -(10**14)})
    writer.append(event | {"customerId": "not UTF-8"}, replace=(b"not", b"\xff\xfe\xfd"))
    source.append(ledger.random_events(10))

    wait_until(lambda: len(reasons(settings)) >= earlier + 3, "they are dead letters")
    wait_until(lambda: ledger.is_folded(settings), "the valid ones are folded")
    ledger.assert_exact(settings)
    assert sorted(reasons(settings)[earlier:]) == ["invalid_text", "time_out_of_range", "time_out_of_range"]


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.endurance)])
def test_killed_driver_is_exact_after_its_restart_and_writes_no_dead_letter_twice(
    settings: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger, kills: int
) -> None:
    before = len(records_of(settings, DEAD_LETTERS))
    for _ in range(kills):
        driver.ensure_running()
        source.append(ledger.random_events(1_500))
        wait_until(lambda: ledger.folded(settings) >= ledger.events - 1_000, "some events are folded")
        source.append_raw(None, b"garbage")
        source.append(ledger.random_events(500))
        driver.kill()
    # At another pace, from the same checkpoint.
    driver.ensure_running(stream_pace="throughput")
    source.append(ledger.random_events(500))
    wait_until(lambda: ledger.is_folded(settings), "all events are folded again")
    ledger.assert_exact(settings)
    wait_until(
        lambda: len(records_of(settings, DEAD_LETTERS)) >= before + kills, "every bad record is a dead letter"
    )
    assert len(records_of(settings, DEAD_LETTERS)) == before + kills


@pytest.mark.endurance
def test_driver_killed_in_real_time_mode_after_a_commit_can_catch_up_in_batches(
    settings: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    commits = Path(checkpoint_path(settings.checkpoints, "balance", 1)) / "commits"

    def folds() -> bool:
        status = query_status(settings.kafka_connection, "balance", 1)
        return status is not None and status.phase in CONTINUOUS

    def newest_commit() -> int:
        return max(int(path.name) for path in commits.glob("*") if path.name.isdigit())

    wait_until(folds, "the driver folds")
    source.append(ledger.random_events(300))
    wait_until(lambda: ledger.is_folded(settings), "folded in real time")
    last = newest_commit()
    wait_until(lambda: newest_commit() > last, "committed in real time")
    driver.kill()
    source.append(ledger.random_events(300))

    driver.ensure_running(stream_catch_up_threshold_events=0)

    wait_until(lambda: ledger.is_folded(settings), "caught up")
    ledger.assert_exact(settings)
