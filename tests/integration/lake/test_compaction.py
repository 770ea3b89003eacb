"""After a compaction, the lake contains exactly the newest record of each key, even after a killed run."""

import shutil
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from include.lake.tables import LakeLockedError, lake_lock
from include.lake.tags import CommitTag
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path, compaction_checkpoint
from spark_jobs import compaction
from spark_jobs.compaction import Compaction, compact
from spark_jobs.lake import live_lake
from spark_jobs.lake.changelog_batch import AFTER_DELETION, DELETED, RecordCounts
from spark_jobs.lake.live_lake import promote
from tests.support.lake.lake_ledger import LakeLedger
from tests.support.lake.stream_checkpoint import write_stream_checkpoint


def compacted(ledger: LakeLedger, spark: SparkSession) -> Compaction:
    """Compact and compare the table with the ledger."""
    ledger.flush()
    done = compact(spark, ledger.settings, ledger.model)
    assert done is not None
    assert ledger.rows() == ledger.expected
    return done


def tags(spark: SparkSession, ledger: LakeLedger) -> list[CommitTag]:
    """Return the tags of the table's commits, oldest first."""
    history = DeltaTable.forPath(spark, ledger.table).history().orderBy("version").collect()
    return [tag for commit in history if (tag := CommitTag.from_json(commit.userMetadata))]


@dataclass(frozen=True)
class Round:
    """One compaction: its result, the table's rows afterwards, and the expected rows."""

    done: Compaction
    rows: dict[str, tuple[Decimal, int]]
    expected: dict[str, tuple[Decimal, int]]


@pytest.fixture(scope="module")
def rounds(settings: Settings, lake_spark: SparkSession) -> list[Round]:
    """Compact new keys; then changes, deletions and repeated records; then nothing."""
    ledger = LakeLedger(settings, "compacted")

    def compacted_round() -> Round:
        ledger.flush()
        done = compact(lake_spark, settings, ledger.model)
        assert done is not None
        return Round(done, ledger.rows(), dict(ledger.expected))

    for number in range(200):
        ledger.put(f"key {number}", number, 1)
    ledger.put("repeated 1", 500, 5)
    ledger.put("repeated 2", 600, 6)
    first = compacted_round()
    for number in range(150, 250):
        ledger.put(f"key {number}", number * 7, 2)
    ledger.delete("key 0")
    ledger.delete("key 1")
    ledger.put("key 1", 1, 1)
    # A killed driver repeats these after its restart.
    ledger.put_old("repeated 1", 300, 3)
    ledger.put_old("repeated 1", 400, 4)
    ledger.put_old("repeated 2", 600, 6)
    return [first, compacted_round(), compacted_round()]


def test_new_keys_are_merged(rounds: list[Round]) -> None:
    assert rounds[0].done.counts == RecordCounts(records=202, states=202)
    assert rounds[0].rows == rounds[0].expected


def test_changes_new_keys_and_deletions_are_merged(rounds: list[Round]) -> None:
    done = rounds[1].done

    assert rounds[1].rows == rounds[1].expected
    assert done.counts == RecordCounts(records=106, states=103, deletions=1)
    assert done.commits == 1
    assert done.tag.operation == "compaction"
    assert sum(done.tag.changelog_offsets.values()) == 308


def test_a_record_that_a_killed_driver_repeats_changes_nothing(rounds: list[Round]) -> None:
    repeated = {key: row for key, row in rounds[1].rows.items() if key.startswith("repeated")}

    assert repeated == {"repeated 1": (Decimal("5.00"), 5), "repeated 2": (Decimal("6.00"), 6)}


def test_without_new_records_nothing_is_committed(rounds: list[Round]) -> None:
    assert (rounds[2].done.commits, rounds[2].done.counts) == (0, RecordCounts())
    assert rounds[2].rows == rounds[1].rows


def test_the_table_names_the_offsets_up_to_which_it_is_complete(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-complete")
    ledger.put("a", 1, 1)
    assert compacted(ledger, lake_spark).tag.complete_up_to == {}
    write_stream_checkpoint(ledger.settings, ledger.model, 0, {"0": 5, "1": 6})
    ledger.put("a", 2, 2)
    assert compacted(ledger, lake_spark).tag.complete_up_to == {0: 5, 1: 6}
    write_stream_checkpoint(ledger.settings, ledger.model, 1, {"0": 7, "1": 6})
    before = set(Path(ledger.table).glob("*.parquet"))

    done = compacted(ledger, lake_spark)

    # Only dead letters and events without a state have been appended: the commit has a new tag and no files.
    assert (done.commits, done.tag.complete_up_to) == (1, {0: 7, 1: 6})
    assert set(Path(ledger.table).glob("*.parquet")) == before
    assert tags(lake_spark, ledger)[-1] == done.tag

    # Without its checkpoint the stream starts at the first event again: the table keeps its offsets.
    shutil.rmtree(checkpoint_path(settings.checkpoints, ledger.name, 1))
    write_stream_checkpoint(ledger.settings, ledger.model, 0, {"0": 3, "1": 9})
    assert compacted(ledger, lake_spark).tag.complete_up_to == {0: 7, 1: 9}


@pytest.mark.endurance
def test_a_recreated_changelog_is_read_from_its_beginning(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = LakeLedger(settings, "compacted-replaced")
    with monkeypatch.context() as earlier:
        # Simulates an earlier release, whose tags had no topic ids.
        earlier.setattr(live_lake, "CommitTag", lambda *fields: CommitTag(*fields[:-1]))
        earlier.setattr(live_lake, "replace", lambda tag, **_: tag)
        ledger.put("a", 1, 1)
        ledger.put("gone", 1, 1)
        assert compacted(ledger, lake_spark).tag.topic_id == ""
    ledger.put("a", 2, 2)
    first = compacted(ledger, lake_spark)
    assert first.counts.records == 1
    assert first.tag.topic_id
    write_stream_checkpoint(ledger.settings, ledger.model, 0, {"0": 7})

    ledger.recreate_changelog()
    for number in range(100):
        ledger.put(f"key {number}", number, 1)
    ledger.put("a", 1, 1)

    second = compacted(ledger, lake_spark)

    assert second.counts.records == 101
    assert second.tag.topic_id not in {"", first.tag.topic_id}
    assert second.tag.promotion_id != first.tag.promotion_id


@pytest.mark.endurance
def test_after_a_lost_checkpoint_compaction_continues_at_the_offsets_of_the_table(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-lost-checkpoint")
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("a", 2, 2)
    compacted(ledger, lake_spark)
    folder = Path(compaction_checkpoint(settings.checkpoints, ledger.name, 1))
    assert len(list(folder.iterdir())) == 1
    folder.rename(folder.with_name("lost"))
    ledger.put("a", 3, 3)
    ledger.put("b", 1, 1)

    done = compacted(ledger, lake_spark)

    assert done.counts == RecordCounts(records=2, states=2)


def test_after_a_promotion_and_a_rollback_compaction_continues_at_the_overwrite(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-back")
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("a", 2, 2)
    compacted(ledger, lake_spark)
    first = dict(ledger.expected)
    ledger.make_new_version_live(2)
    ledger.put("b", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("b", 2, 2)
    compacted(ledger, lake_spark)

    ledger.roll_back_to(1)
    ledger.expected = first
    ledger.put("c", 3, 3)
    compacted(ledger, lake_spark)
    ledger.put("c", 4, 4)

    done = compacted(ledger, lake_spark)

    assert done.counts.records == 1
    assert [tag.version for tag in tags(lake_spark, ledger)] == [1, 1, 2, 2, 1, 1]


def test_a_run_killed_between_commit_and_checkpoint_is_repeated_without_a_second_merge(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-torn")
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("a", 2, 2)
    done = compacted(ledger, lake_spark)
    commits = (
        Path(compaction_checkpoint(settings.checkpoints, ledger.name, 1)) / done.tag.promotion_id / "commits"
    )
    for name in ("0", ".0.crc"):
        (commits / name).unlink(missing_ok=True)
    ledger.put("a", 3, 3)

    again = compacted(ledger, lake_spark)

    assert (again.counts.records, again.commits) == (1, 1)


@pytest.mark.endurance
def test_the_same_batch_of_the_same_query_is_merged_once(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-once")
    ledger.put("a", 1, 1)
    ledger.flush()
    lake = promote(lake_spark, settings, ledger.model)
    assert lake is not None
    rows = lake_spark.read.format("delta").load(ledger.table)
    columns = {DELETED: "false", AFTER_DELETION: "true"}
    for amount in (7, 8):
        changes = rows.selectExpr(
            "* except (amount)",
            f"cast({amount} as decimal(38, 2)) amount",
            *(f"{v} `{k}`" for k, v in columns.items()),
        )
        lake.table.merge(changes, lake.tag, "application", 1)

    amounts = [row.amount for row in lake_spark.read.format("delta").load(ledger.table).collect()]

    assert amounts == [7]


@pytest.mark.endurance
def test_large_changelogs_are_merged_in_batches(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "BATCH_RECORDS", 40)
    ledger = LakeLedger(settings, "compacted-in-batches")
    compacted(ledger, lake_spark)
    write_stream_checkpoint(ledger.settings, ledger.model, 0, {"0": 9})
    for number in range(100):
        ledger.put(f"key {number % 30}", number, 1 + number // 30)

    done = compacted(ledger, lake_spark)

    assert (done.counts.records, done.commits) == (100, 3)
    # Only the last batch reaches the changelog's end, and so the new offsets.
    assert [tag.complete_up_to for tag in tags(lake_spark, ledger)[-3:]] == [{}, {}, {0: 9}]


@pytest.mark.endurance
def test_a_second_writer_is_refused(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = LakeLedger(settings, "compacted-locked")
    monkeypatch.setattr("include.lake.tables.LOCK_WAIT_S", 0.0)

    with lake_lock(settings.home, ledger.name), pytest.raises(LakeLockedError, match="by another process"):
        compact(lake_spark, settings, ledger.model)


@pytest.mark.endurance
def test_optimize_and_vacuum_bound_the_files(settings: Settings, lake_spark: SparkSession) -> None:
    short = settings.changed(lake_retention_h=0.0)
    ledger = LakeLedger(short, "compacted-small-files")
    for number in range(3):
        for key in range(40):
            ledger.put(f"key {number}/{key}", key, 1)
        compacted(ledger, lake_spark)
    ledger.flush()

    done = compact(lake_spark, short, ledger.model, force_optimize=True)

    assert done is not None
    assert [m.operation for m in done.maintenance] == ["OPTIMIZE", "VACUUM"]
    optimized, vacuumed = done.maintenance
    assert optimized.before.files > optimized.after.files == 1
    assert vacuumed.before.stored_files > vacuumed.after.stored_files
    assert done.after.stored_files == len(list(Path(ledger.table).glob("*.parquet")))
    assert ledger.rows() == ledger.expected
    assert replace(tags(lake_spark, ledger)[-1], operation="") == replace(done.tag, operation="")
