"""A kind of declaration in one file of a user's folder: it writes each output once, and is seen wherever the built-in kinds are."""

from pathlib import Path

from include.kafka.events import event_key
from include.kafka.topics import dead_letter_topic
from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from include.status.flow_status import FlowStatus
from include.status.measurement import read_stream_status
from include.stream.query_reports import Phase
from include.stream.slot_planning import query_slots
from query_api.metrics.status_metrics import stream_exposition
from tests.integration.emissions.receipts import SOURCE, Deposits
from tests.support.stream_process import records_of
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[3] / "support" / "read_models_with_kind"
OUTPUT, QUERY = "first-deposits", "distinct/first-deposits"


def first_of(deposits: Deposits) -> dict[bytes, bytes]:
    """Return the record of the first deposit of each customer, by its key."""
    first: dict[bytes, bytes] = {}
    for event in deposits.events:
        first.setdefault(event_key(event), deposits.source.serializer.serialize(event))
    return first


def flow(settings: Settings) -> FlowStatus:
    """Return the flow of the declaration in the status document."""
    (found,) = read_stream_status(settings).of_kind("distinct")
    return found


def wait_for_outputs(settings: Settings, deposits: Deposits) -> None:
    count = len(first_of(deposits))
    wait_until(lambda: (flow(settings).records or 0) >= count, "the first deposits", timeout_s=240)


def require_exact(settings: Settings, deposits: Deposits) -> None:
    """Wait until the flow has caught up; fail unless it has forwarded the first deposit of each customer, once and unchanged."""
    wait_for_outputs(settings, deposits)
    wait_until(lambda: flow(settings).events_behind == 0, "the flow has read every event", timeout_s=120)
    found = [(record.key(), record.value()) for record in records_of(settings, OUTPUT)]
    assert sorted(found, key=str) == sorted(first_of(deposits).items(), key=str)


def test_each_first_event_is_forwarded_once_after_a_kill_of_the_driver(
    settings: Settings, deposits: Deposits
) -> None:
    wait_for_outputs(settings, deposits)
    # In real time, after the catch-up.
    deposits.append(50)
    require_exact(settings, deposits)


def test_a_restarted_driver_forwards_no_event_of_a_known_key(settings: Settings, restarted: Deposits) -> None:
    restarted.append(200)
    require_exact(settings, restarted)


def test_the_status_document_has_it_with_its_lag_and_slots(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    require_exact(settings, deposits)
    wait_until(
        lambda: (report := flow(settings).report) is not None and report.phase == Phase.REAL_TIME,
        "the flow is in real time",
        timeout_s=120,
    )
    document = read_stream_status(settings).to_json()
    (row,) = (one for one in document["flows"] if one["kind"] == "distinct")
    expected = {
        "query": QUERY,
        "name": "first-deposits",
        "belongs_to": "first-deposits",
        "stage": "live",
        "source_topic": SOURCE,
        "output_topic": OUTPUT,
        "events_behind": 0,
        "records": len(first_of(deposits)),
    }
    assert {name: row[name] for name in expected} == expected
    slots = query_slots(settings.stream, settings.topics.partitions)
    assert row["report"]["task_slots"] == slots
    alone, without = (settings.changed(read_models_dir=folder) for folder in (DECLARATIONS, None))
    assert stream_task_slots(alone) == stream_task_slots(without) + slots


def test_metrics_have_it(settings: Settings, driver: SharedDriver, deposits: Deposits) -> None:
    driver.ensure_running()
    require_exact(settings, deposits)
    text = stream_exposition(read_stream_status(settings)).decode()
    labels = '{kind="distinct",name="first-deposits",stage="live",version=""}'
    assert f"foldlake_stream_output_events_behind{labels} 0.0" in text
    assert f"foldlake_stream_output_events{labels} " in text
    assert f'foldlake_stream_query_restarts{{phase="real time",query="{QUERY}"}}' in text


def test_what_it_cannot_read_becomes_a_dead_letter(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    letters = dead_letter_topic(SOURCE)
    before = len(records_of(settings, letters))
    deposits.source.append_raw(b"customer-1", b"junk")
    deposits.append(10)
    wait_until(lambda: len(records_of(settings, letters)) == before + 1, "the dead letter", timeout_s=120)
    require_exact(settings, deposits)
