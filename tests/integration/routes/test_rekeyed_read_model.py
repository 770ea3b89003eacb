"""A read model with another key than its events' folds each event once, however its driver is killed, and only under its own key."""

import io
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
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
from spark_jobs.quality_check import FAILED
from tests.support.faults.transactions import TransactionalWriter
from tests.support.lake.stage_processes import StageProcesses
from tests.support.stream_process import EventSource, make_topics, records_of, states
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[2] / "support" / "read_models_with_rekey"
MODEL = load_catalog((DECLARATIONS,)).models["daily-deposits"]
CHANGELOG = "daily-deposits.v1.changelog"
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = 3_000
FAULTY = "2026-01-03"
STAGE_TIMEOUT_S = 240.0
Totals = dict[str, tuple[int, Decimal]]


@pytest.fixture(scope="module")
def home(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=1,
        **SHORT_COMMITS,
        quality_wait_s=20.0,
        read_models_dir=DECLARATIONS,
    ) as settings:
        make_topics(settings, MODEL.events_topic)
        yield settings


@pytest.fixture(scope="module")
def rekeying_driver(home: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(home) as shared:
        yield shared


def deposits(first: int) -> list[FundsAdded]:
    return [
        FundsAdded(
            customerId=f"customer-{number % 211}",
            amount=(Decimal(number % 1_000 + 1) / 4).quantize(Decimal("0.01")),
            occurredOn=START + timedelta(hours=number % 240),
        )
        for number in range(first, first + EVENTS)
    ]


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
    home: Settings, rekeying_driver: SharedDriver
) -> None:
    source = EventSource(home, MODEL.events_topic)
    events = deposits(0)
    source.append(events)
    rekeying_driver.ensure_running()
    wait_until(lambda: bool(folded(home)), "some days are folded", timeout_s=120)
    more = deposits(EVENTS)
    source.append(more)
    rekeying_driver.kill()
    events += more
    # By another program: an event of a day in the partition of its customer.
    EventSource(home, MODEL.source_topic).append(more[:1])
    rekeying_driver.ensure_running()
    wait_until(lambda: folded(home) == totals(events), "every day is exact", timeout_s=240)
    assert len(records_of(home, MODEL.source_topic)) == len(events) + 1

    def letters() -> list[tuple[object, object]]:
        found = records_of(home, dead_letter_topic(MODEL.source_topic))
        return [(dict(letter.headers() or [])["reason"], letter.key()) for letter in found]

    expected = [(b"invalid_key", more[0].customerId.encode())]
    wait_until(lambda: letters() == expected, "the dead letter", timeout_s=120)
    assert folded(home) == totals(events)
    (route,) = read_stream_status(home).of_kind(FlowKind.ROUTE)
    assert (route.name, route.output_topic) == ("daily-deposits-by-key", MODEL.source_topic)


def test_transactions_are_folded_and_their_markers_are_no_lag(
    home: Settings, rekeying_driver: SharedDriver
) -> None:
    """The topics of this module end with markers and aborted records from here on."""
    rekeying_driver.ensure_running()
    before, event = folded(home), FundsAdded(customerId="flink", amount=Decimal("0.25"), occurredOn=START)
    record = (event.customerId.encode(), EventSource(home, MODEL.events_topic).serializer.serialize(event))
    for topic, partition in ((MODEL.events_topic, 0), (MODEL.source_topic, 1), (MODEL.source_topic, 2)):
        TransactionalWriter(home, topic).abort([record] * 500, partition)
    writer = TransactionalWriter(home, MODEL.events_topic)
    writer.commit([record])
    writer.abort([record] * 500)
    writer.leave_open([record], partition=1)
    count, total = before["2026-01-01"]
    after = before | {"2026-01-01": (count + 1, total + event.amount)}
    wait_until(lambda: folded(home) == after, "the committed event is folded", timeout_s=120)
    writer.abort_open()

    def lag() -> int:
        return sum(flow.events_behind or 0 for flow in read_stream_status(home).flows)

    wait_until(lambda: lag() == 0, "nothing is behind", timeout_s=120)
    catalog = load_catalog(home.declaration_folders)
    with RoutedTopic(home.kafka.bootstrap_servers, catalog, MODEL.source_topic) as routed:
        version = live_version_if_known(home.kafka.bootstrap_servers, MODEL.name)
        assert version is not None
        assert routed.lacking() == {}
        assert routed.folded(MODEL.name, version).covers(routed.ends_of(MODEL.source_topic))
    assert folded(home) == after


@pytest.mark.endurance
@pytest.mark.timeout(900)
def test_it_is_checked_rebuilt_and_promoted_and_a_planted_fault_is_found(
    home: Settings, rekeying_driver: SharedDriver
) -> None:
    rekeying_driver.ensure_running()
    right = folded(home)
    assert len(right) == 10
    with (home.home / "logs" / "stages.log").open("ab") as log:
        stages = StageProcesses(home, MODEL.name, log)
        plant_fault(home, FAULTY)
        require_success(stages.lake_job("compaction"))
        wait_until(lambda: is_idle_after_compaction(home, stages), "compaction becomes idle", timeout_s=120)
        faulty = stages.lake_job("quality_check", "--stores", "lake,changelog", "--run-id", "faulty")
        assert faulty.wait(STAGE_TIMEOUT_S) == FAILED
        verdict = json.loads(summary_path(home.home, "faulty").read_text())
        # Once for each store.
        assert {key["key"] for key in verdict["failing_keys"]} == {FAULTY}

        require_success(stages.action("register_candidate", "--run-id", "rebuild", "--reason", "a fault"))
        version = ("--version", "2")
        require_success(stages.stream_job("catch_up", *version))
        require_success(stages.lake_job("build_staging", *version))
        check = ("--stores", "changelog,staging", "--run-id", "verify")
        require_success(stages.lake_job("quality_check", *version, *check))
        require_success(stages.lake_job("compare_versions", *version, "--run-id", "compare"))
        compared = report.read(home.home, "compare")
        assert compared is not None
        assert (compared.differing, compared.all_keys, compared.notes) == (0, len(right), ())
        require_success(stages.action("hand_over", *version))
        now = datetime.now(UTC)
        with VersionRegistry(home.kafka.bootstrap_servers) as registry:
            change_live(
                registry,
                MODEL.name,
                lambda record: promote(record, 2, now=now, retire_live_after=now + timedelta(days=1)),
            )
        require_success(stages.lake_job("promote_lake"))
    assert rows(DeltaTable(table_path(home.lake_root, MODEL.name))) == right
    found = states(home, MODEL, "daily-deposits.v2.changelog")
    assert {key: (state.state["deposits"], state.state["total"]) for key, state in found.items()} == right


def test_a_node_explains_a_day_by_the_events_under_its_key(
    home: Settings, rekeying_driver: SharedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    rekeying_driver.ensure_running()
    for name, value in settings_environment(home).items():
        monkeypatch.setenv(name, value)
    explanations = Explanations(home)
    found: list[Explanation] = []

    def is_explained() -> bool:
        one = explanations.find(ExplainRequest(MODEL, FAULTY, None))
        found.extend([one] if isinstance(one, Explanation) else [])
        return bool(found)

    wait_until(is_explained, "the day is explained", timeout_s=120)
    (explained,) = found
    count, total = totals([*deposits(0), *deposits(EVENTS)])[FAULTY]
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
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
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
