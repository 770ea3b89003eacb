"""A version becomes live only if it lacks no event that the live one has shown; a rollback can force it, and says what is lacking."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from confluent_kafka import Producer

from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.topics import PROGRESS_TOPIC, admin_client, changelog, ensure_topics
from include.nodes.node_url import PeerRule
from include.rebuild import promotion
from include.rebuild.errors import GateClosedError, RollbackRefusedError
from include.rebuild.hydration import SMALL_LAG, hydration, reports
from include.rebuild.stage import Action, PlanStage
from include.rebuild.stages.promotion import PROMOTE
from include.rebuild.stages.rollback import CHOOSE_VERSION, ROLL_BACK
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions, Stage, Version
from tests.support.changelog_writer import ChangelogWriter
from tests.support.node_stack import NodeStack
from tests.support.rebuild.stage_runs import stage_run
from tests.support.waiting import wait_until

MODEL = "balance"
LACKING = 200
EVENTS = 2 * LACKING
assert LACKING < SMALL_LAG, "hydration must tolerate what the gate does not"


@pytest.fixture(autouse=True)
def _short_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotion, "GATE_TIMEOUT_S", 3.0)


@pytest.fixture
def customer(nodes: NodeStack) -> str:
    """A customer whose newest event in the live version is the last of EVENTS."""
    found = next(iter(nodes.expected))
    for number in range(EVENTS - nodes.event_count(found)):
        nodes.put(found, Decimal(number) / 100 + Decimal("5.00"))
    nodes.writer.flush()
    nodes.wait_until_exact()
    _append_to_source(nodes.settings)
    return found


def _append_to_source(settings: Settings) -> None:
    """Append records, so that the source contains the offsets of the state records: the gate requires no others."""
    producer = Producer(settings.kafka_connection.client_settings)
    for partition in range(settings.topics.partitions):
        for _ in range(EVENTS + 1):
            producer.produce(MODEL, b"no event", partition=partition)
    assert producer.flush(30) == 0


@contextmanager
def version_behind(nodes: NodeStack, number: int, stage: Stage, customer: str) -> Iterator[ChangelogWriter]:
    """Add a version in which only this customer's last events are missing; retire it at the end, whatever it has become."""
    writer = ChangelogWriter(nodes.settings, version=number)
    writer.make_topics()
    for name, amount in nodes.expected.items():
        count = nodes.event_count(name) - (LACKING if name == customer else 0)
        writer.write(name, amount, count, source_offset=count)
    writer.flush()
    append(nodes, Version(number, stage, 1, writer.topic, "test", "now", run_id(number)))
    admin = admin_client(nodes.settings.kafka_connection)
    peers = PeerRule.of_client(nodes.settings)
    partitions = nodes.settings.topics.partitions
    try:
        wait_until(
            lambda: not hydration(reports(admin, peers), MODEL, number, partitions).missing,
            "hydration accepts the version",
        )
        yield writer
    finally:
        set_stages(nodes, {1: Stage.LIVE, number: Stage.RETIRED})


def versions(nodes: NodeStack) -> ReadModelVersions:
    with VersionRegistry(nodes.settings.kafka_connection) as registry:
        return registry.read()[MODEL]


def live(nodes: NodeStack) -> int:
    found = versions(nodes).live
    assert found is not None
    return found.number


def append(nodes: NodeStack, version: Version) -> None:
    with VersionRegistry(nodes.settings.kafka_connection) as registry:
        record = registry.read()[MODEL]
        registry.compare_and_set(replace(record, versions=(*record.versions, version)), record.revision)


def set_stages(nodes: NodeStack, stages: dict[int, Stage]) -> None:
    with VersionRegistry(nodes.settings.kafka_connection) as registry:
        record = registry.read()[MODEL]
        changed = tuple(replace(v, stage=stages.get(v.number, v.stage)) for v in record.versions)
        registry.compare_and_set(replace(record, versions=changed), record.revision)


def report_phase(settings: Settings, query: str, phase: str, last_error: str = "") -> None:
    """Report a query's phase instead of the stream driver; the report counts as current for 15 s."""
    ensure_topics(admin_client(settings.kafka_connection), [changelog(PROGRESS_TOPIC, 1)], 1)
    report = {
        "query": query,
        "source_topic": MODEL,
        "phase": phase,
        "restarts": 0,
        "last_error": last_error,
        "driver_pid": os.getpid(),
        "master": "none",
        "at": datetime.now(UTC).isoformat(),
        "last_batch": {},
    }
    producer = Producer(settings.kafka_connection.client_settings)
    producer.produce(PROGRESS_TOPIC, key=query.encode(), value=json.dumps(report).encode())
    assert producer.flush(30) == 0


def run(nodes: NodeStack, stage: PlanStage, number: int, *, force: bool = False) -> list[str]:
    """Run a stage's action and return the notes that it sets."""
    notes: list[str] = []
    form = {"read_model": MODEL, "reason": "test", "force": force, "grace_hours": 1.0}
    assert isinstance(stage.work, Action)
    results = {CHOOSE_VERSION.name: number}
    stage.work.run(
        stage_run(
            nodes.settings,
            (MODEL,),
            form,
            run_id=run_id(number),
            results=results,
            set_note=notes.append,
        )
    )
    return notes


def run_id(number: int) -> str:
    """Return the run of the rebuild that has built a version."""
    return f"run-{number}"


def test_a_candidate_is_promoted_only_once_it_has_every_event_that_the_live_version_had(
    nodes: NodeStack, customer: str
) -> None:
    with version_behind(nodes, 8, Stage.CANDIDATE, customer) as writer:
        report_phase(nodes.settings, "balance/v8", "real time")
        with pytest.raises(GateClosedError, match=f"lacks up to {LACKING} events of v1") as closed:
            run(nodes, PROMOTE, 8)
        assert {f"http://127.0.0.1:{port}" for port in nodes.ports} == {
            word for word in str(closed.value).split() if word.startswith("http://")
        }, "owner and standby are named"
        assert live(nodes) == 1

        writer.write(customer, nodes.expected[customer], EVENTS, source_offset=EVENTS)
        writer.flush()
        report_phase(nodes.settings, "balance/v8", "real time")
        run(nodes, PROMOTE, 8)
        assert live(nodes) == 8
        nodes.wait_until_exact()


def test_a_rollback_to_a_version_that_lacks_something_changes_nothing_unless_it_is_forced(
    nodes: NodeStack, customer: str
) -> None:
    with version_behind(nodes, 9, Stage.PREVIOUS, customer):
        before = versions(nodes)
        report_phase(nodes.settings, "balance/v9", "refused", "put revision 9 back")
        with pytest.raises(RollbackRefusedError) as refused:
            run(nodes, ROLL_BACK, 9)
        for lacking in (
            "Nothing was rolled back",
            "its query is refused (put revision 9 back)",
            f"lacks up to {LACKING} events of v1",
        ):
            assert lacking in str(refused.value)
        assert versions(nodes) == before

        (note,) = run(nodes, ROLL_BACK, 9, force=True)
        assert live(nodes) == 9
        assert "by force" in note
        assert f"lacks up to {LACKING} events of v1" in note

        report_phase(nodes.settings, "balance/v1", "real time")
        assert run(nodes, ROLL_BACK, 1) == [], "v1 lacks nothing, so it needs no force"
        assert live(nodes) == 1
        nodes.wait_until_exact()


@pytest.mark.endurance
@pytest.mark.usefixtures("customer")
def test_a_version_that_starts_later_lacks_nothing_that_it_skips(nodes: NodeStack) -> None:
    """A reset to the end of the log: the version is not asked for the events before its start, and is not behind by them."""
    with starting_at(nodes, 10, skipped=0):
        report_phase(nodes.settings, "balance/v10", "real time")
        with pytest.raises(GateClosedError, match="events of v1"):
            run(nodes, PROMOTE, 10)

    ends = source_ends(nodes)
    with starting_at(nodes, 11, skipped=min(ends)):
        report_phase(nodes.settings, "balance/v11", "real time")
        found = reports(admin_client(nodes.settings.kafka_connection), PeerRule.of_client(nodes.settings))
        held = [r for own in found.values() for r in own or () if r.version == 11 and r.is_held]
        assert {r.events_behind for r in held} == {ends[r.partition] - min(ends) for r in held}
        run(nodes, PROMOTE, 11)
        assert live(nodes) == 11


def source_ends(nodes: NodeStack) -> tuple[int, ...]:
    consumer = log_consumer(nodes.settings.kafka_connection)
    try:
        return end_offsets(consumer, MODEL, nodes.settings.topics.partitions)
    finally:
        consumer.close()


@contextmanager
def starting_at(nodes: NodeStack, number: int, skipped: int) -> Iterator[None]:
    """Add a candidate that skips so many events of each partition, with records of first events; make version 1 live at the end."""
    writer = ChangelogWriter(nodes.settings, version=number)
    writer.make_topics()
    for name, amount in nodes.expected.items():
        writer.write(name, amount, 1, source_offset=0)
    writer.flush()
    starts = (skipped,) * nodes.settings.topics.partitions if skipped else ()
    append(
        nodes,
        Version(
            number, Stage.CANDIDATE, 1, writer.topic, "test", "now", run_id(number), start_offsets=starts
        ),
    )
    admin = admin_client(nodes.settings.kafka_connection)
    peers = PeerRule.of_client(nodes.settings)

    def is_loaded() -> bool:
        found = reports(admin, peers)
        held = [r for own in found.values() for r in own or () if r.version == number and r.is_held]
        return bool(held) and all(r.is_ready for r in held)

    try:
        wait_until(is_loaded, "the nodes have loaded the version")
        yield
    finally:
        set_stages(nodes, {1: Stage.LIVE, number: Stage.RETIRED})
