"""A read model with another key than its events' folds each event once, however its driver is killed, and only under its own key."""

import io
import json
import subprocess
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from include.declarations.load import load_catalog
from include.kafka.topics import dead_letter_topic
from include.kafka.wire_format import HEADER_BYTES
from include.lake.pending_work import has_pending_work
from include.lake.tables import table_path
from include.quality.check_run import FAILED
from include.quality.report import summary_path
from include.read_models.balance.events import FundsAdded
from include.rebuild.comparison import report
from include.rebuild.routed_events import RoutedTopic
from include.settings import Settings, settings_environment
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from include.versions.explanation import Explanation, object_of
from include.versions.registry import VersionRegistry, change_live, live_version_if_known
from include.versions.transitions import promote
from query_api.http.explain.explanations import ExplainRequest, Explanations
from tests.integration.emissions.receipts import START, Deposits
from tests.support.faults.transactions import TransactionalWriter
from tests.support.lake.stage_processes import StageProcesses
from tests.support.stream_process import EventSource, records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[3] / "support" / "read_models_with_rekey"
MODEL = load_catalog((DECLARATIONS,)).models["daily-deposits"]
CHANGELOG = "daily-deposits.v1.changelog"
FAULTY = "2026-01-03"
STAGE_TIMEOUT_S = 240.0
Totals = dict[str, tuple[int, Decimal]]


def totals(events: list[FundsAdded]) -> Totals:
    counts: Counter[str] = Counter()
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for event in events:
        day = f"{event.occurredOn:%Y-%m-%d}"
        counts[day] += 1
        sums[day] += event.amount
    return {day: (counts[day], sums[day]) for day in counts}


def folded(settings: Settings) -> Totals:
    found = states(settings, MODEL, CHANGELOG)
    return {key: (state.state["deposits"], state.state["total"]) for key, state in found.items()}


def test_the_fold_is_exact_after_a_kill_and_a_record_under_another_key_is_a_dead_letter(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    # By another program: an event of a day in the partition of its customer.
    other = deposits.events[0]
    EventSource(settings, MODEL.source_topic).append([other])
    expected = totals(deposits.events)
    wait_until(lambda: folded(settings) == expected, "every day is exact", timeout_s=240)
    assert len(records_of(settings, MODEL.source_topic)) == len(deposits.events) + 1

    def letters() -> list[tuple[object, object]]:
        found = records_of(settings, dead_letter_topic(MODEL.source_topic))
        return [(dict(letter.headers() or [])["reason"], letter.key()) for letter in found]

    letter = (b"invalid_key", other.customerId.encode())
    wait_until(lambda: letters() == [letter], "the dead letter", timeout_s=120)
    assert folded(settings) == expected
    routes = {route.name: route for route in read_stream_status(settings).of_kind(FlowKind.ROUTE)}
    assert routes["daily-deposits-by-key"].output_topic == MODEL.source_topic


def test_transactions_are_folded_and_their_markers_are_no_lag(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    """The topics of this module end with markers and aborted records from here on."""
    driver.ensure_running()
    event = FundsAdded(customerId="flink", amount=Decimal("0.25"), id="flink", occurredOn=START)
    record = (
        event.customerId.encode(),
        EventSource(settings, MODEL.events_topic).serializer.serialize(event),
    )
    for topic, partition in ((MODEL.events_topic, 0), (MODEL.source_topic, 1), (MODEL.source_topic, 2)):
        TransactionalWriter(settings, topic).abort([record] * 500, partition)
    writer = TransactionalWriter(settings, MODEL.events_topic)
    writer.commit([record])
    writer.abort([record] * 500)
    writer.leave_open([record], partition=1)
    deposits.add(event)
    after = totals(deposits.events)
    wait_until(lambda: folded(settings) == after, "the committed event is folded", timeout_s=120)
    writer.abort_open()

    def lag() -> int:
        return sum(flow.events_behind or 0 for flow in read_stream_status(settings).flows)

    wait_until(lambda: lag() == 0, "nothing is behind", timeout_s=120)
    catalog = load_catalog(settings.declaration_folders)
    with RoutedTopic(settings.kafka_connection, catalog, MODEL.source_topic) as routed:
        version = live_version_if_known(settings.kafka_connection, MODEL.name)
        assert version is not None
        assert routed.lacking() == {}
        assert routed.folded(MODEL.name, version).covers(routed.ends_of(MODEL.source_topic))
    assert folded(settings) == after


@pytest.mark.endurance
@pytest.mark.timeout(900)
def test_it_is_checked_rebuilt_and_promoted_and_a_planted_fault_is_found(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    wait_until(lambda: folded(settings) == totals(deposits.events), "every day is exact", timeout_s=240)
    right = folded(settings)
    assert len(right) == 10
    with (settings.home / "logs" / "stages.log").open("ab") as log:
        stages = StageProcesses(settings, MODEL.name, log)
        plant_fault(settings, FAULTY)
        require_success(stages.lake_job("compaction"))
        wait_until(
            lambda: is_idle_after_compaction(settings, stages), "compaction becomes idle", timeout_s=120
        )
        faulty = stages.lake_job("quality_check", "--stores", "lake,changelog", "--run-id", "faulty")
        assert faulty.wait(STAGE_TIMEOUT_S) == FAILED
        verdict = json.loads(summary_path(settings.home, "faulty").read_text())
        # Once for each store.
        assert {key["key"] for key in verdict["failing_keys"]} == {FAULTY}

        require_success(stages.action("register_candidate", "--run-id", "rebuild", "--reason", "a fault"))
        version = ("--version", "2")
        require_success(stages.stream_job("catch_up", *version))
        require_success(stages.lake_job("build_staging", *version))
        check = ("--stores", "changelog,staging", "--run-id", "verify")
        require_success(stages.lake_job("quality_check", *version, *check))
        require_success(stages.lake_job("compare_versions", *version, "--run-id", "compare"))
        compared = report.read(settings.home, "compare")
        assert compared is not None
        assert (compared.differing, compared.all_keys, compared.notes) == (0, len(right), ())
        require_success(stages.action("hand_over", *version))
        now = datetime.now(UTC)
        with VersionRegistry(settings.kafka_connection) as registry:
            change_live(
                registry,
                MODEL.name,
                lambda record: promote(record, 2, now=now, retire_live_after=now + timedelta(days=1)),
            )
        require_success(stages.lake_job("promote_lake"))
    assert rows(DeltaTable(table_path(settings.lake_root, MODEL.name))) == right
    found = states(settings, MODEL, "daily-deposits.v2.changelog")
    assert {key: (state.state["deposits"], state.state["total"]) for key, state in found.items()} == right


def test_a_node_explains_a_day_by_the_events_under_its_key(
    settings: Settings, driver: SharedDriver, deposits: Deposits, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.ensure_running()
    for name, value in settings_environment(settings).items():
        monkeypatch.setenv(name, value)
    explanations = Explanations(settings)
    found: list[Explanation] = []

    def is_explained() -> bool:
        one = explanations.find(ExplainRequest(MODEL, FAULTY, None))
        found.extend([one] if isinstance(one, Explanation) else [])
        return bool(found)

    wait_until(is_explained, "the day is explained", timeout_s=120)
    (explained,) = found
    count, total = totals(deposits.events)[FAULTY]
    assert explained.shown.event_count == count
    assert object_of(explained.shown.state) == {"deposits": count, "total": total}
    assert [event.number for event in explained.events] == [*range(1, 21), *range(count - 19, count + 1)]
    assert object_of(explained.events[-1].state) == {"deposits": count, "total": total}
    # A previous version has the same fold; the planted record was on its changelog, not on the log.
    assert {(one.stage, one.state) for one in explained.others} <= {("previous", explained.shown.state)}
    assert len(explained.read_until) == 1


def is_idle_after_compaction(settings: Settings, stages: StageProcesses) -> bool:
    """Whether the lake contains everything, as soon as the stream has committed it."""
    if not has_pending_work(settings, MODEL):
        return True
    require_success(stages.lake_job("compaction"))
    return False


def plant_fault(settings: Settings, day: str) -> None:
    """Append a state record with a wrong total to the changelog, under the newest one's position."""
    newest = [m for m in records_of(settings, CHANGELOG) if m.key() == day.encode()][-1]
    value, schema = newest.value() or b"", fastavro.parse_schema(MODEL.state_schema.parsed())
    state = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), schema, None)
    assert isinstance(state, dict)
    wrong = io.BytesIO()
    fastavro.schemaless_writer(wrong, schema, state | {"total": state["total"] + 1})
    producer = Producer(settings.kafka_connection.client_settings)
    producer.produce(
        CHANGELOG,
        value[:HEADER_BYTES] + wrong.getvalue(),
        newest.key(),
        partition=newest.partition() or 0,
    )
    assert producer.flush(30) == 0


def require_success(process: "subprocess.Popen[bytes]") -> None:
    assert process.wait(STAGE_TIMEOUT_S) == 0, f"{process.args!r}: see stages.log"


def rows(table: DeltaTable) -> Totals:
    return {row["key"]: (row["deposits"], row["total"]) for row in table.to_pyarrow_table().to_pylist()}
