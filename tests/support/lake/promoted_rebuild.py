"""A rebuild of a read model without Airflow: its stages as processes, up to the promotion."""

import subprocess
from datetime import UTC, datetime, timedelta

from include.rebuild.comparison import report
from include.settings import Settings
from include.versions.registry import VersionRegistry, change_live
from include.versions.transitions import promote
from tests.support.lake.stage_processes import StageProcesses
from tests.support.unsupervised_driver import SharedDriver

STAGE_TIMEOUT_S = 300.0


def rebuild_and_promote(settings: Settings, driver: SharedDriver, name: str) -> None:
    """Build version 2 of a read model, verify it, compare it with the live one, and make it live. The driver, which would take the processors from the jobs, stops meanwhile."""
    driver.stop()
    with (settings.home / "logs" / "stages.log").open("ab") as log:
        stages = StageProcesses(settings, name, log)
        _require_success(stages.action("register_candidate", "--run-id", "rebuild", "--reason", "a test"))
        version = ("--version", "2")
        _require_success(stages.stream_job("catch_up", *version))
        _require_success(stages.lake_job("build_staging", *version))
        both = ("--stores", "changelog,staging", "--run-id", f"verify-{name}")
        _require_success(stages.lake_job("quality_check", *version, *both))
        compare_id = f"compare-{name}"
        _require_success(stages.lake_job("compare_versions", *version, "--run-id", compare_id))
        compared = report.read(settings.home, compare_id)
        assert compared is not None
        assert (compared.differing, compared.notes) == (0, ()), "the fold is the same"
        driver.ensure_running()
        _require_success(stages.action("hand_over", *version))
    now = datetime.now(UTC)
    with VersionRegistry(settings.kafka_connection) as registry:
        change_live(
            registry,
            name,
            lambda record: promote(record, 2, now=now, retire_live_after=now + timedelta(days=1)),
        )


def _require_success(process: "subprocess.Popen[bytes]") -> None:
    assert process.wait(STAGE_TIMEOUT_S) == 0, f"{process.args!r}: see stages.log"
