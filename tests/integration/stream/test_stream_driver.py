"""The stream driver on real input: rubbish, new schemas, kills; every balance exact, every bad record accounted for."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from include.declarations.event_schemas import event_schema
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import header
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.stream.status import read_stream_status
from include.versions.registry import Stage, VersionRegistry
from tests.support.stream_events import BALANCE, CHANGELOG, RANDOM, Ledger, random_event
from tests.support.stream_process import (
    EventSource,
    event_counts,
    kill_jvm,
    records_of,
)
from tests.support.unsupervised_driver import launch, stream_driver
from tests.support.waiting import wait_until

LETTERS = f"{BALANCE.source_topic}.dead-letter"


@pytest.fixture(scope="module")
def source(stream_stack: Settings) -> EventSource:
    return EventSource(stream_stack, BALANCE.source_topic)


@pytest.fixture(scope="module")
def ledger(stream_stack: Settings) -> Ledger:
    return Ledger(stream_stack)


def rubbish(source: EventSource) -> list[tuple[str, bytes | None, bytes | None]]:
    """Return 100 bad records, as (reason expected, key, value)."""
    good = source.serializer.serialize(random_event())
    other = source.serializer.serialize(FundsAdded(customerId="somebody-else", amount=Decimal("1.00")))
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


def test_good_events_are_folded_and_rubbish_becomes_dead_letters_once(
    stream_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    assert records_of(stream_stack, LETTERS) == [], "no other test may leave dead letters"
    bad = rubbish(source)
    records: list[tuple[bytes | None, bytes | None]] = [(key, value) for _, key, value in bad]
    good = ledger.random_events(10_000 - len(bad))
    records += [(event.customerId.encode(), source.serializer.serialize(event)) for event in good]
    RANDOM.shuffle(records)
    for key, value in records:
        source.append_raw(key, value)
    source.flush()
    expected = Counter(reason for reason, _, _ in bad)

    with stream_driver(stream_stack):
        wait_until(lambda: ledger.is_folded(stream_stack), "all good events folded")
        wait_until(
            lambda: len(records_of(stream_stack, LETTERS)) >= len(bad), "all bad records are dead letters"
        )
        found = [dict(message.headers() or []) for message in records_of(stream_stack, LETTERS)]
        assert Counter(str(headers["reason"], "utf-8") for headers in found) == expected  # type: ignore[arg-type]  # bytes
        positions = {(h["source_partition"], h["source_offset"]) for h in found}
        assert len(positions) == len(bad)
        assert {h["source_topic"] for h in found} == {b"balance"}
        ledger.assert_exact(stream_stack)
        wait_until(
            lambda: read_stream_status(stream_stack).state == "running", "the driver reports real time"
        )
        status = read_stream_status(stream_stack)
        assert status.events_behind == 0
        assert status.dead_letters == len(bad)


def test_first_start_creates_version_one_live(stream_stack: Settings) -> None:
    record = VersionRegistry(stream_stack.kafka.bootstrap_servers).read()["balance"]
    assert [(v.number, v.stage, v.changelog_topic) for v in record.versions] == [(1, Stage.LIVE, CHANGELOG)]


def test_killed_driver_is_exact_after_its_restart_and_writes_no_dead_letter_twice(
    stream_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    before = len(records_of(stream_stack, LETTERS))
    for _ in range(2):
        process = launch(stream_stack)
        try:
            source.append(ledger.random_events(1_500))
            wait_until(
                lambda: event_counts(stream_stack, BALANCE, CHANGELOG) >= ledger.events - 1_000,
                "some are folded",
            )
            source.append_raw(None, b"rubbish")
            source.append(ledger.random_events(500))
        finally:
            kill_jvm(stream_stack, process)
    with stream_driver(stream_stack):
        source.append(ledger.random_events(500))
        wait_until(lambda: ledger.is_folded(stream_stack), "all folded again")
        ledger.assert_exact(stream_stack)
        wait_until(
            lambda: len(records_of(stream_stack, LETTERS)) >= before + 2, "both bad records are dead letters"
        )
        assert len(records_of(stream_stack, LETTERS)) == before + 2


def test_event_of_a_new_schema_version_flows_without_a_restart_by_hand(
    stream_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    schema = event_schema("FundsAdded").parsed()
    schema["fields"].append({"name": "channel", "type": "string", "default": "till"})
    newer = RecordSchema.parse(json.dumps(schema), "FundsAdded with a channel")
    with stream_driver(stream_stack) as process:
        source.append(ledger.random_events(200))
        wait_until(lambda: ledger.is_folded(stream_stack), "the old ones are folded")
        newer_id = source.registry.register(BALANCE.source_topic, newer)
        for number in range(300):
            event = ledger.note(FundsAdded(customerId=f"customer-{number % 50}", amount=Decimal("1.25")))
            value = source.serializer.serialize(event)
            source.append_raw(event.customerId.encode(), header(newer_id) + value[5:] + b"\x06web")
        source.append(ledger.random_events(200))
        wait_until(lambda: ledger.is_folded(stream_stack), "both versions are folded")
        ledger.assert_exact(stream_stack)
        assert process.poll() is None


@pytest.mark.parametrize("commits", [0, 1])
def test_driver_killed_in_real_time_mode_can_catch_up_in_batches(
    stream_stack: Settings, source: EventSource, ledger: Ledger, tmp_path: Path, commits: int
) -> None:
    eager = {"checkpoint_dir": str(tmp_path), "stream_catch_up_threshold_events": 0}
    patient = {
        "checkpoint_dir": str(tmp_path),
        "stream_catch_up_threshold_events": 10**9,
        "stream_real_time_interval_s": 5 if commits else 300,
    }
    process = launch(stream_stack.changed(**patient))
    try:
        source.append(ledger.random_events(300))
        wait_until(lambda: ledger.is_folded(stream_stack), "folded in real time")
        folder = tmp_path / "balance" / "v1" / "commits"
        wait_until(lambda: len([p for p in folder.glob("*") if p.name.isdigit()]) >= commits, "committed")
    finally:
        kill_jvm(stream_stack, process)
    source.append(ledger.random_events(300))

    with stream_driver(stream_stack.changed(**eager)):
        wait_until(lambda: ledger.is_folded(stream_stack), "caught up")
        ledger.assert_exact(stream_stack)
