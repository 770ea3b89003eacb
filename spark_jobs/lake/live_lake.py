"""Replaces the content of `lake/<model>` with the live version in one commit, for promotion, rollback and compaction."""

import logging
import time
import uuid
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from include.declarations.read_model import ReadModel
from include.kafka.schema_registry import JOB_PATIENCE_S, SchemaRegistry
from include.kafka.topic_state import topic_state
from include.kafka.topics import changelog_topic
from include.lake.table_lock import lake_lock
from include.lake.tables import table_path
from include.lake.tagged_table import NewestTag
from include.lake.tags import CommitTag
from include.position import Offsets
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version
from spark_jobs.folding.topic_records import topic_records
from spark_jobs.lake.changelog_batch import DELETED, RecordCounts, count_records, newest_records, readable
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.runtime.checkpoint import committed_offsets

LOG = logging.getLogger(__name__)
OPERATION = "promotion"


@dataclass(frozen=True)
class LiveLake:
    """A table that contains the live version.

    tag: of its newest commit, with the changelog's topic id. counts: of the changelog records that were just read into it;
    None if it already contained the version.
    """

    version: Version
    table: LakeTable
    tag: CommitTag
    counts: RecordCounts | None


def lake_table(spark: SparkSession, lake_root: str, retention_h: float, model: ReadModel) -> LakeTable:
    """Return the table that analysts read."""
    return LakeTable(spark, table_path(lake_root, model.name), retention_h, model)


def live_version(bootstrap_servers: str, model: ReadModel) -> Version | None:
    """Return the live version, or None if there is none yet."""
    with VersionRegistry(bootstrap_servers) as registry:
        record = registry.read().get(model.name)
    return None if record is None else record.live


def folded_up_to(spark: SparkSession, checkpoints: str, model: ReadModel, version: Version) -> Offsets:
    """Return source partition -> offset below which every event is in the version's changelog.

    Call this before reading the changelog's end offsets: the changelog up to those ends is then complete up to this result.
    """
    checkpoint = checkpoint_path(checkpoints, model.name, version.number)
    return committed_offsets(spark, checkpoint, model.reading(version.source_topic).source_topic)


def promote(spark: SparkSession, settings: Settings, model: ReadModel) -> LiveLake | None:
    """Replace the table's content with the live version, if it differs. May be killed and repeated at any point.

    Returns None when there is no live version yet, or its changelog does not exist.
    Raises LakeLockedError when another process writes to the table.
    """
    with lake_lock(settings.home, model.name):
        return ensure_live_version(spark, settings, model)


def ensure_live_version(spark: SparkSession, settings: Settings, model: ReadModel) -> LiveLake | None:
    """Like `promote`, for a caller that holds the table's lock."""
    version = live_version(settings.kafka.bootstrap_servers, model)
    if version is None:
        LOG.info("%s has no live version yet: nothing to do", model.name)
        return None
    complete_up_to = folded_up_to(spark, settings.checkpoints, model, version)
    changelog = topic_state(settings.kafka.bootstrap_servers, version.changelog_topic)
    if changelog is None:
        LOG.info("%s has no topic %s yet: nothing to do", model.name, version.changelog_topic)
        return None
    table = lake_table(spark, settings.lake_root, settings.lake.retention_h, model)
    table.ensure()
    newest = table.newest_tag()
    if newest is not None and newest.tag.version == version.number:
        reason = invalid_reason(newest, changelog.topic_id)
        if not reason:
            LOG.info("lake/%s already contains version %d", model.name, version.number)
            # A tag of an earlier release has no topic id: the next commit adds it.
            return LiveLake(version, table, replace(newest.tag, topic_id=changelog.topic_id), None)
        LOG.warning("lake/%s: %s: rebuilding the table from the changelog", model.name, reason)
    tag = CommitTag(
        model.name,
        version.number,
        version.fold_revision,
        OPERATION,
        changelog.ends,
        complete_up_to,
        uuid.uuid4().hex[:12],
        changelog.topic_id,
    )
    counts = _overwrite(spark, settings, model, table, tag)
    return LiveLake(version, table, tag, counts)


def invalid_reason(newest: NewestTag[CommitTag], topic_id: str) -> str:
    """Return why a table's content no longer matches its newest tag; empty if it matches."""
    if newest.overwritten_by:
        return f"another program changed the table ({newest.overwritten_by})"
    if newest.tag.topic_id not in {"", topic_id}:
        return f"the changelog was recreated (its topic id was {newest.tag.topic_id} and is now {topic_id})"
    return ""


def _overwrite(
    spark: SparkSession, settings: Settings, model: ReadModel, table: LakeTable, tag: CommitTag
) -> RecordCounts:
    started_s = time.monotonic()
    topic = changelog_topic(model.name, tag.version)
    LOG.info("lake/%s: reading version %d from %s", model.name, tag.version, topic)
    writers = SchemaRegistry(settings.registry.url, patience_s=JOB_PATIENCE_S).schema_ids(topic)
    records = topic_records(spark, settings.kafka.bootstrap_servers, topic, tag.changelog_offsets)
    newest = newest_records(spark, model, writers, records).persist()
    try:
        counts = count_records(newest)
        table.overwrite(readable(newest).where(~col(DELETED)), tag, settings.lake.shuffle_partitions)
    finally:
        newest.unpersist()
    report_unreadable(topic, counts)
    LOG.info(
        "lake/%s: now contains version %d: %s keys from %s changelog records, in %.1f s",
        model.name,
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
