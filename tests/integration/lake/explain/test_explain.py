"""An explanation shows the events of a key in order, with the state after each, as the fold of exactly those events."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka import murmur2
from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel, StateField
from include.kafka.topic_state import topic_state
from include.position import Offsets, Position
from include.read_models.balance.events import FundsAdded, FundsWithdrawn
from include.read_models.balance.model import READ_MODEL
from include.replay.explain.__main__ import compared_with_spark
from include.replay.explain.__main__ import explanation as by_duckdb
from include.replay.explain.served_state import ServedState
from include.replay.fold_sql import NotTranslatedError
from include.settings import CHECKOUT, Settings, settings_environment
from include.settings.systems import system_folder
from include.versions.explanation import PROGRAM, Explanation, NoVersionToExplainError, object_of, steps
from include.versions.key_explanation import ExplainArguments, VersionsOfKey, personal_fields
from include.versions.registry import VersionRegistry, change
from include.versions.version_record import ReadModelVersions, Stage, first_version
from spark_jobs.explain import explanation
from tests.support.lake.explained_by_both import explained_by_both
from tests.support.read_models.deposits_per_day import DECLARATIONS
from tests.support.stream_process import EventSource, make_topics

LIMIT = 4
EVENTS = 30
OTHERS = 25
START = datetime(2026, 1, 1, tzinfo=UTC)


BY_FUNCTION = "explained-by-function"
MODULE = f"""
from dataclasses import replace
from include.read_models.balance.model import READ_MODEL

def total():
    from pyspark.sql import functions as F
    return {{"amount": F.sum("amount")}}

DECLARATIONS = [replace(READ_MODEL, name={BY_FUNCTION!r}, source_topic="explained", folds={{1: total}}, merges={{}})]
"""


MODEL = replace(
    READ_MODEL,
    name="explained",
    source_topic="explained",
    state=(*READ_MODEL.state, StateField("largest", READ_MODEL.state[0].avro_type, since=2)),
    folds={1: READ_MODEL.folds[1], 2: {"amount": "sum(amount)", "largest": "max(amount)"}},
    merges={},
)


@pytest.fixture(scope="module")
def own_events(settings: Settings) -> Sequence[FundsAdded]:
    """The events of customer `me` on a topic that has others as well, and a record that cannot be decoded under the same key."""
    make_topics(settings, MODEL.source_topic)
    source = EventSource(settings, MODEL.source_topic)
    mine = [
        (FundsWithdrawn if n % 3 == 2 else FundsAdded)(
            customerId="me", amount=Decimal(100 + n) / 100, occurredOn=START + timedelta(days=n)
        )
        for n in range(EVENTS)
    ]
    for number, event in enumerate(mine):
        source.append([event])
        if number == 10:
            source.append_raw(b"me", b"\x00no event")
    source.append(FundsAdded(customerId=f"other-{n}", amount=Decimal("9.99")) for n in range(OTHERS))
    with VersionRegistry(settings.kafka_connection) as registry:
        registry.ensure_topic()
        for name in (MODEL.name, "explained-days", "explained-ending", BY_FUNCTION):
            registry.compare_and_set(first_version(name, 1), 0)
    return mine


@pytest.fixture
def registry(settings: Settings) -> Iterator[VersionRegistry]:
    with VersionRegistry(settings.kafka_connection) as registry:
        yield registry


def explained(  # the arguments of a request
    spark: SparkSession,
    settings: Settings,
    key: str,
    version: int | None = None,
    masked: tuple[str, ...] = (),
    model: ReadModel = MODEL,
) -> Explanation:
    found = explained_by_both(spark, settings, model, key, version, LIMIT, masked)
    assert Explanation.from_json(found.to_json()) == found
    return found


def signed(event: FundsAdded) -> Decimal:
    return -event.amount if isinstance(event, FundsWithdrawn) else event.amount


def test_every_event_has_the_state_after_it(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded]
) -> None:
    found = explained(lake_spark, settings, "me")

    balances = [sum(map(signed, own_events[: n + 1]), Decimal(0)) for n in range(EVENTS)]
    numbers = [*range(1, LIMIT + 1), *range(EVENTS - LIMIT + 1, EVENTS + 1)]
    assert [event.number for event in found.events] == numbers
    assert [object_of(event.state) for event in found.events] == [
        {"amount": balances[n - 1]} for n in numbers
    ]
    for event in found.events:
        appended = own_events[event.number - 1]
        assert event.event_type == type(appended).__name__
        assert datetime.fromisoformat(event.occurred_on) == appended.occurredOn
        assert object_of(event.event) == {"id": appended.id, "customerId": "me", "amount": appended.amount}
    # The record that cannot be decoded takes an offset, and does not count.
    offsets = [event.offset for event in found.events]
    assert offsets == sorted(offsets)
    assert found.shown.event_count == EVENTS
    assert found.hidden_events == EVENTS - 2 * LIMIT
    assert object_of(found.shown.state) == {"amount": balances[-1]}
    shown = steps(found)
    assert [step.skipped for step in shown if step.skipped] == [EVENTS - 2 * LIMIT]
    assert [step.changed for step in shown[:2]] == [frozenset(), {"amount"}]


def test_only_the_keys_partition_is_read(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded]
) -> None:
    assert own_events
    log = topic_state(settings.kafka_connection, MODEL.source_topic)
    assert log is not None
    own = int(murmur2(b"me", len(log.ends)))

    found = explained(lake_spark, settings, "me")

    assert found.read_until == {str(own): log.ends.of(own)}
    assert found.records_read == log.ends.of(own)


@pytest.mark.endurance
def test_other_versions_say_what_they_give(
    settings: Settings,
    lake_spark: SparkSession,
    own_events: Sequence[FundsAdded],
    registry: VersionRegistry,
) -> None:
    (next_fold,) = explained(lake_spark, settings, "me").others
    assert (next_fold.version, next_fold.fold_revision) == (None, 2)
    of_all = {"amount": sum(e.amount for e in own_events), "largest": max(e.amount for e in own_events)}
    assert object_of(next_fold.state) == of_all
    log = topic_state(settings.kafka_connection, MODEL.source_topic)
    assert log is not None
    own = int(murmur2(b"me", len(log.ends)))
    # Behind the 20th event and the record that cannot be decoded.
    offset = explained(lake_spark, settings, "me").events[0].offset + 21
    starts = Offsets({p: offset if p == own else 0 for p in log.ends})

    def with_second(record: ReadModelVersions) -> ReadModelVersions:
        second = replace(
            record.versions[0],
            number=2,
            stage=Stage.BUILDING,
            fold_revision=2,
            start_offsets=tuple(starts.values()),
        )
        return replace(record, versions=(record.versions[0], second))

    change(registry, MODEL.name, with_second)

    (other,) = explained(lake_spark, settings, "me").others
    found = explained(lake_spark, settings, "me", version=2)

    later = own_events[20:]
    of_later = {"amount": sum(e.amount for e in later), "largest": max(e.amount for e in later)}
    assert (other.version, other.stage, other.event_count) == (2, "building", len(later))
    assert object_of(other.state) == of_later
    assert found.shown == other
    assert [event.number for event in found.events] == [1, 2, 3, 4, 7, 8, 9, 10]
    assert [one.version for one in found.others] == [1]
    with pytest.raises(NoVersionToExplainError, match="explained has no version 99; known: 1, 2"):
        explained(lake_spark, settings, "me", version=99)


def test_a_key_that_is_not_the_records_is_searched_in_all_partitions(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded]
) -> None:
    model = replace(DECLARATIONS[0], name="explained-days", source_topic=MODEL.source_topic)

    found = explained(lake_spark, settings, "me/2026-01-02", model=model)

    assert len(found.read_until) > 1
    assert [object_of(event.state) for event in found.events] == [
        {"deposits": 1, "largest": own_events[1].amount}
    ]


def test_an_item_that_has_ended_has_no_state(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded]
) -> None:
    assert own_events[27].amount == Decimal("1.27")
    model = replace(MODEL, name="explained-ending", ended="amount = 1.27")

    found = explained(lake_spark, settings, "me", model=model)

    assert [event.number for event in found.events if event.state is None] == [28, 29, 30]
    assert found.shown.state is None


def test_the_program_lets_spark_explain_what_duckdb_cannot_fold(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded], tmp_path: Path
) -> None:
    assert own_events
    folder, result = tmp_path / "models", tmp_path / "explanation.json"
    folder.mkdir()
    (folder / "by_function.py").write_text(MODULE)
    with_folder = settings.changed(read_models_dir=folder)
    command = [sys.executable, "-m", PROGRAM, f"--read-model={BY_FUNCTION}", "--key=me"]
    subprocess.run(
        [*command, f"--events={LIMIT}", f"--result={result}"],
        cwd=CHECKOUT,
        env={**os.environ, **settings_environment(with_folder)},
        check=True,
    )

    found = Explanation.from_json(result.read_text())

    model = read_model(BY_FUNCTION, (folder,))
    expected = explanation(lake_spark, settings, model, "me", None, LIMIT, ())
    assert replace(found, explained_at=expected.explained_at) == expected
    versions = VersionsOfKey.of(settings.kafka_connection, model, None)
    with pytest.raises(NotTranslatedError, match="its fold is a function"):
        by_duckdb(settings, model, "me", versions, LIMIT, ())


def test_spark_decides_whether_a_served_record_differs(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded], tmp_path: Path
) -> None:
    assert own_events
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "by_function.py").write_text(MODULE)
    given = ExplainArguments(BY_FUNCTION, "me", None, LIMIT, False, tmp_path / "explanation.json")  # noqa: FBT003 - personal
    wrong = replace(explained(lake_spark, settings, "me"), events=())
    last = explained(lake_spark, settings, "me").events[-1]
    assert last.state is not None
    position = Position(last.partition, last.offset, last.number)

    def difference(state: str) -> str:
        served = ServedState("node-1", position, state)
        with_folder = settings.changed(read_models_dir=tmp_path / "models")
        return compared_with_spark(with_folder, given, wrong, served).difference

    # That of this read model is the sum of all amounts.
    total = sum(event.amount for event in own_events)
    assert difference(f'{{"amount":{total}}}') == ""
    assert f'give {{"amount":{total}}}' in difference(last.state)


def test_an_unknown_key_has_no_events_and_no_state(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded]
) -> None:
    assert own_events

    found = explained(lake_spark, settings, "nobody")

    assert (found.events, found.shown.event_count, found.shown.state) == ((), 0, None)


def test_personal_fields_are_those_of_the_schemas() -> None:
    loyalty = read_model("loyalty", (system_folder("pos"),))

    assert personal_fields(loyalty) == ("LoyaltyInvoice.cardNumber",)
    assert personal_fields(MODEL) == ()


def test_masked_fields_are_left_out(
    settings: Settings, lake_spark: SparkSession, own_events: Sequence[FundsAdded]
) -> None:
    assert own_events
    masked = ("FundsAdded.customerId", "FundsWithdrawn.customerId")

    found = explained(lake_spark, settings, "me", masked=masked)

    assert found.masked == masked
    assert {name for event in found.events for name in object_of(event.event) or {}} == {"id", "amount"}
