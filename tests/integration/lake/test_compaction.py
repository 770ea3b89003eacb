"""Compaction: the lake holds exactly the newest record of each key, whatever the changelog brings and whoever is killed."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from include.lake.table_lock import LakeLockedError, lake_lock
from include.lake.tables import CommitTag
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path, compaction_checkpoint
from spark_jobs import compaction
from spark_jobs.compaction import Compaction, compact
from spark_jobs.lake import live_lake
from spark_jobs.lake.changelog_batch import RecordCounts
from spark_jobs.lake.live_lake import promote
from tests.support.lake_ledger import LakeLedger

RANDOM = random.Random(20261121)


def compacted(ledger: LakeLedger, spark: SparkSession) -> Compaction:
    """Compact and compare the table with the ledger."""
    ledger.flush()
    done = compact(spark, ledger.settings, ledger.model)
    assert done is not None
    assert ledger.rows(spark) == ledger.expected
    return done


def tags(spark: SparkSession, ledger: LakeLedger) -> list[CommitTag]:
    """Return the tags of the table's commits, oldest first."""
    history = DeltaTable.forPath(spark, ledger.table).history().orderBy("version").collect()
    return [tag for commit in history if (tag := CommitTag.from_json(commit.userMetadata))]


def pretend_folded(ledger: LakeLedger, batch: int, offsets: dict[str, int]) -> None:
    """Write what the checkpoint of the stream's query says after a batch."""
    checkpoint = Path(checkpoint_path(ledger.settings, ledger.name, 1))
    source = json.dumps({ledger.model.source_topic: offsets})
    for folder, text in (("offsets", f"v1\n{{}}\n{source}"), ("commits", "v1\n{}")):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        (checkpoint / folder / str(batch)).write_text(text)


def test_changes_new_keys_and_deletions_are_merged(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "compacted")
    for number in range(200):
        ledger.put(f"key {number}", number, 1)
    assert compacted(ledger, lake_spark).counts == RecordCounts(records=200, states=200)
    for number in range(150, 250):
        ledger.put(f"key {number}", number * 7, 2)
    ledger.delete("key 0")
    ledger.delete("key 1")
    ledger.put("key 1", 1, 1)

    done = compacted(ledger, lake_spark)

    assert done.counts == RecordCounts(records=103, states=101, deletions=1)
    assert done.commits == 1
    assert done.tag.operation == "compaction"
    assert sum(done.tag.changelog_offsets.values()) == 303


def test_a_record_that_a_killed_driver_repeats_changes_nothing(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-repeats")
    ledger.put("a", 500, 5)
    ledger.put("b", 600, 6)
    compacted(ledger, lake_spark)
    ledger.put_old("a", 300, 3)
    ledger.put_old("a", 400, 4)
    ledger.put_old("b", 600, 6)

    compacted(ledger, lake_spark)


def test_where_nothing_came_nothing_is_committed(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "compacted-nothing")
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)

    done = compacted(ledger, lake_spark)

    assert (done.commits, done.counts) == (0, RecordCounts())


def test_the_table_says_up_to_where_it_is_complete(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "compacted-complete")
    ledger.put("a", 1, 1)
    assert compacted(ledger, lake_spark).tag.complete_up_to == {}
    pretend_folded(ledger, 0, {"0": 5, "1": 6})
    ledger.put("a", 2, 2)
    assert compacted(ledger, lake_spark).tag.complete_up_to == {0: 5, 1: 6}
    pretend_folded(ledger, 1, {"0": 7, "1": 6})
    before = set(Path(ledger.table).glob("*.parquet"))

    done = compacted(ledger, lake_spark)

    # No record came, only dead letters or events of no state: a commit without files says so.
    assert (done.commits, done.tag.complete_up_to) == (1, {0: 7, 1: 6})
    assert set(Path(ledger.table).glob("*.parquet")) == before
    assert tags(lake_spark, ledger)[-1] == done.tag

    # Its checkpoint removed, the stream begins anew: the table holds what it held.
    shutil.rmtree(checkpoint_path(settings, ledger.name, 1))
    pretend_folded(ledger, 0, {"0": 3, "1": 9})
    assert compacted(ledger, lake_spark).tag.complete_up_to == {0: 7, 1: 9}


def test_a_changelog_that_is_made_anew_is_taken_anew(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = LakeLedger(settings, "compacted-replaced")
    with monkeypatch.context() as earlier:
        # A release that knew nothing of topics' ids.
        earlier.setattr(live_lake, "CommitTag", lambda *fields: CommitTag(*fields[:-1]))
        earlier.setattr(live_lake, "replace", lambda tag, **_: tag)
        ledger.put("a", 1, 1)
        ledger.put("gone", 1, 1)
        assert compacted(ledger, lake_spark).tag.topic_id == ""
    ledger.put("a", 2, 2)
    first = compacted(ledger, lake_spark)
    assert first.counts.records == 1
    assert first.tag.topic_id
    pretend_folded(ledger, 0, {"0": 7})

    ledger.make_changelog_anew()
    for number in range(100):
        ledger.put(f"key {number}", number, 1)
    ledger.put("a", 1, 1)

    second = compacted(ledger, lake_spark)

    assert second.counts.records == 101
    assert second.tag.topic_id not in {"", first.tag.topic_id}
    assert second.tag.promotion_id != first.tag.promotion_id


def test_a_lost_checkpoint_costs_nothing_the_table_says_from_where_on(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-anew")
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("a", 2, 2)
    compacted(ledger, lake_spark)
    folder = Path(compaction_checkpoint(settings, ledger.name, 1))
    assert len(list(folder.iterdir())) == 1
    folder.rename(folder.with_name("lost"))
    ledger.put("a", 3, 3)
    ledger.put("b", 1, 1)

    done = compacted(ledger, lake_spark)

    assert done.counts == RecordCounts(records=2, states=2)


def test_after_a_promotion_and_back_compaction_goes_on_from_the_overwrite(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-back")
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("a", 2, 2)
    compacted(ledger, lake_spark)
    first = dict(ledger.expected)
    ledger.begin_version(2)
    ledger.put("b", 1, 1)
    compacted(ledger, lake_spark)
    ledger.put("b", 2, 2)
    compacted(ledger, lake_spark)

    ledger.go_back_to(1)
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
    commits = Path(compaction_checkpoint(settings, ledger.name, 1)) / done.tag.promotion_id / "commits"
    for name in ("0", ".0.crc"):
        (commits / name).unlink(missing_ok=True)
    ledger.put("a", 3, 3)

    again = compacted(ledger, lake_spark)

    assert (again.counts.records, again.commits) == (1, 1)


def test_the_same_batch_of_the_same_query_is_merged_once(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-once")
    ledger.put("a", 1, 1)
    ledger.flush()
    lake = promote(lake_spark, settings, ledger.model)
    assert lake is not None
    rows = lake_spark.read.format("delta").load(ledger.table)
    columns = {"deleted": "false", "after_deletion": "true"}
    for amount in (7, 8):
        changes = rows.selectExpr(
            "* except (amount)",
            f"cast({amount} as decimal(38, 2)) amount",
            *(f"{v} {k}" for k, v in columns.items()),
        )
        lake.table.merge(changes, lake.tag, "application", 1)

    amounts = [row.amount for row in lake_spark.read.format("delta").load(ledger.table).collect()]

    assert amounts == [7]


def test_large_changelogs_are_merged_in_batches(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "BATCH_RECORDS", 40)
    ledger = LakeLedger(settings, "compacted-in-batches")
    compacted(ledger, lake_spark)
    pretend_folded(ledger, 0, {"0": 9})
    for number in range(100):
        ledger.put(f"key {number % 30}", number, 1 + number // 30)

    done = compacted(ledger, lake_spark)

    assert (done.counts.records, done.commits) == (100, 3)
    # Only the last one is complete.
    assert [tag.complete_up_to for tag in tags(lake_spark, ledger)[-3:]] == [{}, {}, {0: 9}]


def test_a_second_writer_is_refused(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = LakeLedger(settings, "compacted-locked")
    monkeypatch.setattr("include.lake.table_lock.LOCK_WAIT_S", 0.0)

    with lake_lock(settings, ledger.name), pytest.raises(LakeLockedError, match="by another process"):
        compact(lake_spark, settings, ledger.model)


def test_optimize_and_vacuum_bound_the_files(settings: Settings, lake_spark: SparkSession) -> None:
    short = settings.changed(lake_retention_h=0.0)
    ledger = LakeLedger(short, "compacted-small-files")
    for number in range(8):
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
    assert ledger.rows(lake_spark) == ledger.expected
    assert replace(tags(lake_spark, ledger)[-1], operation="") == replace(done.tag, operation="")
