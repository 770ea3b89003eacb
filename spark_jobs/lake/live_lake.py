"""Replaces the content of `lake/<model>` with the live version in one commit, for promotion, rollback and compaction."""

import logging
import time
import uuid
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from include.declarations.read_model import ReadModel
from include.kafka.topic_state import topic_state
from include.lake.tables import lake_lock, table_path
from include.lake.tagged_table import NewestTag
from include.lake.tags import CommitTag
from include.position import Offsets
from include.settings import KafkaConnection, Settings
from include.stream.checkpoints import checkpoint_path
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version
from spark_jobs.lake.changelog_batch import DELETED, Changelog, RecordCounts, count_records, readable
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.runtime.checkpoint import committed_offsets

LOG = logging.getLogger(__name__)
OPERATION = "promotion"


@dataclass(frozen=True)
class LiveLake:
    """A table that contains the live version.

    tag: of its newest commit, with the changelog's topic id. ends: the changelog's end offsets; up to them, it contains every event below
    `complete_up_to` of the source.
    counts: of the changelog records that were just read into the table; None if it already contained the version.
    """

    version: Version
    table: LakeTable
    tag: CommitTag
    changelog: Changelog
    ends: Offsets
    complete_up_to: Offsets
    counts: RecordCounts | None


def lake_table(spark: SparkSession, lake_root: str, retention_h: float, model: ReadModel) -> LakeTable:
    """Return the table that analysts read."""
    return LakeTable(spark, table_path(lake_root, model.name), retention_h, model)


def live_version(kafka: KafkaConnection, model: ReadModel) -> Version | None:
    """Return the live version, or None if there is none yet."""
    with VersionRegistry(kafka) as registry:
        record = registry.read().get(model.name)
    return None if record is None else record.live


def promote(spark: SparkSession, settings: Settings, model: ReadModel) -> LiveLake | None:
    """Replace the table's content with the live version, if it differs. May be killed and repeated at any point.

    Returns None when there is no live version yet, or its changelog does not exist.
    Raises LakeLockedError when another process writes to the table.
    """
    with lake_lock(settings.home, model.name):
        return ensure_live_version(spark, settings, model)


def ensure_live_version(spark: SparkSession, settings: Settings, model: ReadModel) -> LiveLake | None:
    """Like `promote`, for a caller that holds the table's lock."""
    version = live_version(settings.kafka_connection, model)
    if version is None:
        LOG.info("%s has no live version yet: nothing to do", model.name)
        return None
    # Before the changelog's ends: up to these, it then has every event below the offsets in the checkpoint.
    checkpoint = checkpoint_path(settings.checkpoints, model.name, version.number)
    source_topic = model.reading(version.source_topic).source_topic
    complete_up_to = committed_offsets(spark, checkpoint, source_topic)
    found = topic_state(settings.kafka_connection, version.changelog_topic)
    if found is None:
        LOG.info("%s has no topic %s yet: nothing to do", model.name, version.changelog_topic)
        return None
    table = lake_table(spark, settings.lake_root, settings.lake.retention_h, model)
    table.ensure()
    changelog = Changelog(
        settings.kafka_connection,
        settings.registry.connection,
        model,
        version.changelog_topic,
        table.columns,
    )
    newest = table.newest_tag()
    if newest is not None and newest.tag.version == version.number:
        reason = invalid_reason(newest, found.topic_id)
        if not reason:
            LOG.info("lake/%s already contains version %d", model.name, version.number)
            # A tag of an earlier release has no topic id: the next commit adds it.
            tag = replace(newest.tag, topic_id=found.topic_id)
            return LiveLake(version, table, tag, changelog, found.ends, complete_up_to, None)
        LOG.warning("lake/%s: %s: rebuilding the table from the changelog", model.name, reason)
    tag = CommitTag(
        model.name,
        version.number,
        version.fold_revision,
        OPERATION,
        found.ends,
        complete_up_to,
        uuid.uuid4().hex[:12],
        found.topic_id,
    )
    counts = _overwrite(table, changelog, tag, settings.lake.shuffle_partitions)
    return LiveLake(version, table, tag, changelog, found.ends, complete_up_to, counts)


def invalid_reason(newest: NewestTag[CommitTag], topic_id: str) -> str:
    """Return why a table's content no longer matches its newest tag; empty if it matches."""
    if newest.overwritten_by:
        return f"another program changed the table ({newest.overwritten_by})"
    if newest.tag.topic_id not in {"", topic_id}:
        return f"the changelog was recreated (its topic id was {newest.tag.topic_id} and is now {topic_id})"
    return ""


def _overwrite(table: LakeTable, changelog: Changelog, tag: CommitTag, files: int) -> RecordCounts:
    started_s = time.monotonic()
    LOG.info("lake/%s: reading version %d from %s", tag.read_model, tag.version, changelog.topic)
    newest = changelog.read(table.spark, tag.changelog_offsets).persist()
    try:
        counts = count_records(newest)
        table.overwrite(readable(newest).where(~col(DELETED)), tag, files)
    finally:
        newest.unpersist()
    report_unreadable(changelog.topic, counts)
    LOG.info(
        "lake/%s: now contains version %d: %s keys from %s changelog records, in %.1f s",
        tag.read_model,
        tag.version,
        f"{counts.states:,}",
        f"{counts.records:,}",
        time.monotonic() - started_s,
    )
    return counts


def report_unreadable(topic: str, counts: RecordCounts) -> None:
    """Warn about skipped records: another program than the stream driver has written to the changelog."""
    if counts.unreadable:
        LOG.warning(
            "skipped %d records of %s that are not state records: find out which program wrote them",
            counts.unreadable,
            topic,
        )
