"""A planted fault is found by the check; a rebuild repairs it and repeats no alert."""

import io
import json
import subprocess
from datetime import UTC, datetime, timedelta

import fastavro
import pytest
from confluent_kafka import Producer

from demo.log_tables import record_count
from include.declarations.read_model import read_model
from include.kafka.wire_format import HEADER_BYTES
from include.quality.report import summary_path
from include.settings import Settings
from include.settings.systems import system_folder
from include.versions.changes import change_live
from include.versions.registry import VersionRegistry
from include.versions.transitions import promote
from spark_jobs.quality_check import FAILED
from tests.support.lake.stage_processes import StageProcesses
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

STAGE_TIMEOUT_S = 300.0
FAULTY = "product-3"


def plant_fault(settings: Settings, name: str, key: str, field: str) -> None:
    """Append a state record with a wrong number to the changelog, under the newest one's position."""
    changelog, schema = f"{name}.v1.changelog", read_model(name, (system_folder("logs"),)).state_schema
    newest = [m for m in records_of(settings, changelog) if m.key() == key.encode()][-1]
    value, parsed = newest.value() or b"", fastavro.parse_schema(schema.parsed())
    state = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), parsed, None)
    assert isinstance(state, dict)
    wrong = io.BytesIO()
    fastavro.schemaless_writer(wrong, parsed, state | {field: state[field] + 1})
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
    producer.produce(
        changelog, value[:HEADER_BYTES] + wrong.getvalue(), key.encode(), partition=newest.partition() or 0
    )
    assert producer.flush(30) == 0


def require_success(process: "subprocess.Popen[bytes]") -> None:
    assert process.wait(STAGE_TIMEOUT_S) == 0, f"{process.args!r}: see stages.log"


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("check")
def test_a_planted_fault_is_found_and_a_rebuild_repairs_it(settings: Settings, driver: SharedDriver) -> None:
    model = read_model("product-views", (system_folder("logs"),))
    right = states(settings, model, "product-views.v1.changelog")
    alerts = record_count(settings, "popular-products")
    plant_fault(settings, model.name, FAULTY, "views")
    # It would take the processors from the jobs.
    driver.stop()
    with (settings.home / "logs" / "stages.log").open("ab") as log:
        stages = StageProcesses(settings, model.name, log)
        faulty = stages.lake_job("quality_check", "--stores", "changelog", "--run-id", "faulty")
        assert faulty.wait(STAGE_TIMEOUT_S) == FAILED
        verdict = json.loads(summary_path(settings.home, "faulty").read_text())
        assert {key["key"] for key in verdict["failing_keys"]} == {FAULTY}

        require_success(stages.action("register_candidate", "--run-id", "rebuild", "--reason", "a fault"))
        version = ("--version", "2")
        require_success(stages.stream_job("catch_up", *version))
        require_success(stages.lake_job("build_staging", *version))
        both = ("--stores", "changelog,staging", "--run-id", "verify")
        require_success(stages.lake_job("quality_check", *version, *both))
        driver.ensure_running()
        require_success(stages.action("hand_over", *version))
    now = datetime.now(UTC)
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        change_live(
            registry,
            model.name,
            lambda record: promote(record, 2, now=now, retire_live_after=now + timedelta(days=1)),
        )

    found = states(settings, model, "product-views.v2.changelog")
    assert {k: r.state for k, r in found.items()} == {k: r.state for k, r in right.items()}
    # The candidate has sent its alerts to its own topic, and consumers get none again.
    wait_until(lambda: record_count(settings, "popular-products.v2") == alerts, "its alerts", timeout_s=240)
    assert record_count(settings, "popular-products") == alerts
    # The counts are those of the new live version from the next tick on.
    wait_until(
        lambda: ("version", b"2") in (records_of(settings, "product-view-counts")[-1].headers() or []),
        "a tick of version 2",
        timeout_s=60,
    )
