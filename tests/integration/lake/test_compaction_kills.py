"""Compaction killed with -9 at any step, or without space on the lake's disk: the next run makes the table exact.

A changelog that has lost records is not merged.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from include.position import Offsets
from include.settings import Settings
from include.stream.checkpoints import compaction_checkpoint
from spark_jobs.compaction import LostRecordsError, compact
from spark_jobs.lake.live_lake import ensure_live_version
from stack.launchers.direct_submit import launch
from tests.integration.lake.test_compaction import tags
from tests.support.faults.small_disk import small_disk
from tests.support.lake.lake_ledger import LakeLedger
from tests.support.waiting import wait_until

MODEL = """
from dataclasses import replace
from include.read_models.balance.model import READ_MODEL as BALANCE
READ_MODEL = replace(BALANCE, name="killed")
"""
# When a run is killed: just after it has added a file with this name to its table or its checkpoint.
MOMENTS = (
    ("table", "*.parquet"),  # writing the promotion
    ("table", "_delta_log/*.json"),  # promoted
    ("checkpoint", "*/offsets/*"),  # planned a batch
    ("table", "*.parquet"),  # writing a merge
    ("table", "_delta_log/*.json"),  # committed the merge, but not the checkpoint
)

# For a whole run, which takes 20 s, but minutes on a busy machine.
JOB_TIMEOUT_S = 600.0


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the JVM; its Python process exits with it."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(30)
    psutil.wait_procs(children, 30)


@pytest.mark.endurance
@pytest.mark.timeout(3600)
def test_table_is_exact_after_a_kill_at_every_step(
    settings: Settings, lake_spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "killed.py").write_text(MODEL)
    settings = settings.changed(read_models_dir=tmp_path / "models")
    ledger = LakeLedger(settings, "killed")
    places = {
        "table": Path(ledger.table),
        "checkpoint": Path(compaction_checkpoint(settings.checkpoints, "killed", 1)),
    }
    for round_number, (place, pattern) in enumerate(MOMENTS, start=1):
        for number in range(300):
            ledger.put(f"key {number * round_number}", number + round_number, round_number)
        ledger.delete(f"key {round_number}")
        ledger.flush()
        before = set(places[place].glob(pattern))
        process = launch(settings, "compaction", ["--read-model", "killed"])
        wait_until(
            lambda place=place, pattern=pattern, before=before, process=process: (  # type: ignore[misc]
                process.poll() is not None or set(places[place].glob(pattern)) - before
            ),
            f"{pattern} of the {place}",
            timeout_s=JOB_TIMEOUT_S,
        )
        assert process.poll() is None
        kill(process)

    assert launch(settings, "compaction", ["--read-model", "killed"]).wait(JOB_TIMEOUT_S) == 0

    assert ledger.rows() == ledger.expected
    offsets = [sum(tag.changelog_offsets.values()) for tag in tags(lake_spark, ledger)]
    # Each commit starts where the one before ended, and the last one reaches the end: 300 records and a tombstone per round.
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == len(MOMENTS) * 301


@pytest.mark.endurance
def test_lake_without_space_is_exact_when_there_is_space(
    settings: Settings, lake_spark: SparkSession, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", size_mb=24) as disk:
        ledger = LakeLedger(settings.changed(lake_dir=str(disk.path / "lake")), "cramped")
        for number in range(100):
            ledger.put(f"key {number}", number, 1)
        ledger.flush()
        compact(lake_spark, ledger.settings, ledger.model)
        before = ledger.rows()
        for number in range(50, 150):
            ledger.put(f"key {number}", number * 7, 2)
        ledger.flush()

        disk.fill()
        with pytest.raises(Exception, match="No space left"):
            compact(lake_spark, ledger.settings, ledger.model)
        assert ledger.rows() == before, "readers see the table as it was"
        disk.free()

        compact(lake_spark, ledger.settings, ledger.model)
        assert ledger.rows() == ledger.expected


@pytest.mark.endurance
def test_a_changelog_that_lost_its_newest_records_is_not_merged(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "shortened")
    for number in range(50):
        ledger.put(f"key {number}", number, 1)
    ledger.flush()
    compact(lake_spark, settings, ledger.model)
    before = ledger.rows()
    # As after a power failure of a broker that had not synced its files: the table contains more than the log.
    lake = ensure_live_version(lake_spark, settings, ledger.model)
    assert lake is not None
    claimed = Offsets({p: offset + 10 for p, offset in lake.tag.changelog_offsets.items()})
    lake.table.mark(replace(lake.tag, changelog_offsets=claimed))
    ledger.put("key 1", 100, 2)
    ledger.flush()

    with pytest.raises(LostRecordsError, match=r"ends at offset \d+, and lake/shortened contains it up to"):
        compact(lake_spark, settings, ledger.model)

    assert ledger.rows() == before
