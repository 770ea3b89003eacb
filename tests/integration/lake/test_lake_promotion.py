"""Promotion copies the live version from the changelog to `lake/<model>` in one commit."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from include.declarations.read_model import StateField
from include.lake.tags import CommitTag
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from spark_jobs.lake.changelog_batch import RecordCounts
from spark_jobs.lake.live_lake import promote
from spark_jobs.lake.spark_table import newest_tag_of
from spark_jobs.lake.table_definition import LakeTableError
from tests.support.lake.lake_ledger import LakeLedger


def commits(spark: SparkSession, path: str) -> int:
    return DeltaTable.forPath(spark, path).history().count()


def test_a_read_model_without_a_live_version_has_no_table(
    settings: Settings, lake_spark: SparkSession
) -> None:
    model = replace(READ_MODEL, name="never-started")

    assert promote(lake_spark, settings, model) is None
    assert not (Path(settings.lake_root) / "never-started").exists()


def test_the_first_promotion_takes_the_newest_record_of_each_key(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "promoted-first")
    for number in range(100):
        ledger.put(f"key {number}/é", number, 1)
    ledger.put("key 1/é", 111, 3)
    ledger.put_old("key 1/é", 110, 2)
    ledger.delete("key 2/é")
    ledger.delete("key 3/é")
    ledger.put("key 3/é", 5, 1)  # after its deletion, a key starts at event 1 again
    ledger.writer.write_raw(b"rubbish", b"not a state record")
    ledger.flush()

    lake = promote(lake_spark, settings, ledger.model)

    assert lake is not None
    assert ledger.rows() == ledger.expected
    assert lake.counts == RecordCounts(records=106, unreadable=1, states=99, deletions=1)
    newest = newest_tag_of(lake_spark, ledger.table, CommitTag.from_json)
    assert newest is not None
    assert newest.tag == lake.tag
    assert (newest.tag.version, newest.tag.operation) == (1, "promotion")
    assert sum(newest.tag.changelog_offsets.values()) == 106


def with_interrupted_creation(settings: Settings, name: str) -> tuple[LakeLedger, Path]:
    """Return a read model with one key, and its table's log as left by a kill -9 just before the first commit."""
    ledger = LakeLedger(settings, name)
    ledger.put("key", 1, 1)
    ledger.flush()
    log = Path(ledger.table) / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    (log / ".00000000000000000000.json.d58ea04c.tmp").touch()
    (log / "..00000000000000000000.json.d58ea04c.tmp.crc").touch()
    return ledger, log


@pytest.mark.endurance
def test_a_table_whose_creation_was_killed_is_created_again(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger, _ = with_interrupted_creation(settings, "promoted-interrupted")

    assert promote(lake_spark, settings, ledger.model) is not None

    assert ledger.rows() == ledger.expected


@pytest.mark.endurance
def test_an_unknown_table_log_is_left_alone(settings: Settings, lake_spark: SparkSession) -> None:
    ledger, log = with_interrupted_creation(settings, "promoted-unknown")
    (log / "00000000000000000007.json.kept").touch()

    with pytest.raises(AnalysisException, match="DELTA_TABLE_NOT_FOUND"):
        promote(lake_spark, settings, ledger.model)

    assert len(list(log.iterdir())) == 4


def test_columns_are_typed_and_commented(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "promoted-columns")
    promote(lake_spark, settings, ledger.model)

    fields = lake_spark.read.format("delta").load(ledger.table).schema

    assert [(f.name, f.dataType.simpleString(), f.metadata["comment"]) for f in fields] == [
        ("key", "string", "The customer's id."),
        ("amount", "decimal(38,2)", "Balance in the account's currency."),
        ("event_count", "bigint", "Events folded into this record."),
        ("source_partition", "int", "Partition of the newest event folded in."),
        ("source_offset", "bigint", "Offset of the newest event folded in."),
        ("occurred_on", "timestamp", "Newest occurredOn among the events folded in."),
    ]
    detail = DeltaTable.forPath(lake_spark, ledger.table).detail().collect()[0]
    assert detail.clusteringColumns == ["key"]
    assert detail.properties["delta.enableDeletionVectors"] == "false"
    assert detail.properties["delta.deletedFileRetentionDuration"] == "interval 604800 seconds"


def test_a_table_that_is_promoted_already_is_left_alone(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "promoted-twice")
    ledger.put("a", 1, 1)
    ledger.flush()
    promote(lake_spark, settings, ledger.model)
    before = commits(lake_spark, ledger.table)

    again = promote(lake_spark, settings, ledger.model)

    assert again is not None
    assert again.counts is None
    assert commits(lake_spark, ledger.table) == before


def test_promotion_and_rollback_replace_the_whole_table_in_one_commit(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "promoted-back")
    ledger.put("a", 1, 9)
    ledger.put("only in 1", 1, 1)
    ledger.flush()
    promote(lake_spark, settings, ledger.model)
    first, version_1 = commits(lake_spark, ledger.table), dict(ledger.expected)
    ledger.make_new_version_live(2)
    ledger.put("a", 2, 2)  # fewer events: counts of different versions are not comparable
    ledger.flush()

    promote(lake_spark, settings, ledger.model)

    assert ledger.rows() == ledger.expected == {"a": (Decimal("0.02"), 2)}
    assert commits(lake_spark, ledger.table) == first + 1

    ledger.roll_back_to(1)
    promote(lake_spark, settings, ledger.model)

    assert ledger.rows() == version_1
    assert commits(lake_spark, ledger.table) == first + 2


@pytest.mark.endurance
def test_a_table_changed_by_hand_is_rewritten_from_the_changelog(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "promoted-tampered")
    ledger.put("a", 1, 1)
    ledger.put("b", 2, 1)
    ledger.flush()
    promote(lake_spark, settings, ledger.model)
    DeltaTable.forPath(lake_spark, ledger.table).delete("key = 'a'")

    promote(lake_spark, settings, ledger.model)

    assert ledger.rows() == ledger.expected


@pytest.mark.endurance
def test_a_field_that_the_state_gains_becomes_a_column(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "promoted-evolving")
    ledger.put("a", 1, 1)
    ledger.flush()
    promote(lake_spark, settings, ledger.model)
    deposits = StateField("deposits", "long", "Customer's deposits.", since=2)
    folds = {1: READ_MODEL.folds[1], 2: READ_MODEL.folds[1]}
    ledger.model = replace(ledger.model, state=(*READ_MODEL.state, deposits), folds=folds)

    promote(lake_spark, settings, ledger.model)

    # Version 1 still lacks the field.
    table = lake_spark.read.format("delta").load(ledger.table)
    assert table.columns[:4] == ["key", "amount", "deposits", "event_count"]
    assert table.schema["deposits"].metadata["comment"] == "Customer's deposits."
    assert [tuple(row)[:3] for row in table.collect()] == [("a", Decimal("0.01"), None)]

    ledger.make_new_version_live(2, fold_revision=2)
    ledger.put("a", 1, 1, deposits=7)
    ledger.flush()
    promote(lake_spark, settings, ledger.model)

    rows = lake_spark.read.format("delta").load(ledger.table).collect()
    assert [tuple(row)[:3] for row in rows] == [("a", Decimal("0.01"), 7)]


@pytest.mark.endurance
def test_a_changed_field_type_is_refused(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "promoted-retyped")
    promote(lake_spark, settings, ledger.model)
    model = replace(ledger.model, state=(StateField("amount", "string"),))

    with pytest.raises(LakeTableError, match=r"has column amount as decimal\(38,2\).* declares string"):
        promote(lake_spark, settings, model)
