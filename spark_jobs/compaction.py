"""Application: merges new records of the live changelogs into the lake, then runs OPTIMIZE and VACUUM."""

import argparse
import logging
import time
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from include.declarations.load import load_catalog, read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.lake.tables import lake_lock
from include.lake.tags import CommitTag
from include.position import Offsets
from include.settings import Settings
from include.stream.checkpoints import compaction_checkpoint
from spark_jobs.folding.kafka_source import KafkaSource
from spark_jobs.lake.changelog_batch import RecordCounts, count_records, readable
from spark_jobs.lake.live_lake import (
    LiveLake,
    ensure_live_version,
    report_unreadable,
)
from spark_jobs.lake.table_update import ALWAYS, TableUpdate, Written, add_optimize_argument, update_table
from spark_jobs.runtime.checkpoint import batch_offsets, child_names, continues_from, remove_checkpoint
from spark_jobs.runtime.lake_job import run_lake_job

LOG = logging.getLogger(__name__)
OPERATION = "compaction"
# Records in one merge: bounds its memory and the work that is repeated after a kill.
BATCH_RECORDS = 1_000_000
QUERY_ID = "sql.streaming.queryId"


class LostRecordsError(FoldlakeError):
    """The changelog ends before the offsets up to which the table contains it: Kafka has lost records."""


Compaction = TableUpdate[CommitTag, RecordCounts]


def compact(
    spark: SparkSession, settings: Settings, model: ReadModel, *, force_optimize: bool = False
) -> Compaction | None:
    """Bring `lake/<model>` up to the end of the live changelog. May be killed and repeated at any point.

    1. Read the offsets of the stream's checkpoint, then the changelog's end offsets. The order matters: the changelog up to
       these ends then contains every event up to the checkpoint's offsets.
    2. Ensure that the table contains the live version (live_lake), with the changelog offsets up to which it was read.
    3. Merge the records appended since, in batches, each in one commit whose tag has the changelog offsets. A checkpoint that
       is not at the table's offsets is replaced by one that starts there.
    4. Run OPTIMIZE and VACUUM if they are due.

    Returns None when there is no live version yet, or its changelog does not exist.
    Raises LakeLockedError when another process writes to the table, LostRecordsError when the changelog ends before the offsets up to
    which the table contains it.
    """
    started_s = time.monotonic()
    with lake_lock(settings.home, model.name):
        lake = ensure_live_version(spark, settings, model)
        if lake is None:
            return None
        return update_table(
            lake.table,
            partial(_merge_new_records, settings.checkpoints, lake),
            force_optimize=force_optimize,
            started_s=started_s,
        )


def _merge_new_records(checkpoints: str, lake: LiveLake) -> Written[CommitTag, RecordCounts]:
    """Merge the records after the table's offsets; the result has those of a promotion, too."""
    # A removed checkpoint starts again at the first event, behind the offsets that the table is known to contain.
    complete_up_to = lake.tag.complete_up_to.merge(lake.complete_up_to)
    _require_no_loss(lake)
    merging = Written(lake.tag, RecordCounts())
    if not lake.tag.changelog_offsets.covers(lake.ends):
        _run_merges(checkpoints, lake, complete_up_to, merging)
    if complete_up_to != merging.tag.complete_up_to and merging.tag.changelog_offsets.covers(lake.ends):
        merging.tag = replace(merging.tag, operation=OPERATION, complete_up_to=complete_up_to)
        lake.table.mark(merging.tag)
        merging.commits += 1
        LOG.info("lake/%s: no new records; complete up to %s", lake.tag.read_model, complete_up_to)
    report_unreadable(lake.changelog.topic, merging.counts)
    promoted = lake.counts or RecordCounts()
    return Written(merging.tag, promoted + merging.counts, merging.commits + (lake.counts is not None))


def _require_no_loss(lake: LiveLake) -> None:
    name, merged = lake.tag.read_model, lake.tag.changelog_offsets
    lost = [
        f"partition {p} ends at offset {end}, and lake/{name} contains it up to {merged.of(p)}"
        for p, end in lake.ends.items()
        if end < merged.of(p)
    ]
    if lost:
        raise LostRecordsError(
            f"Kafka has lost records of {lake.changelog.topic}: {'; '.join(lost)}. New records at these offsets would not be merged, "
            f"so the table is left as it is. Hint: `./foldlake rebuild {name}` folds the log as it is into a new version and table."
        )


def _run_merges(
    checkpoints: str, lake: LiveLake, complete_up_to: Offsets, merging: Written[CommitTag, RecordCounts]
) -> None:
    """Run the query to the changelog's end; adds the result to `merging`."""
    spark, topic, name = lake.table.spark, lake.changelog.topic, lake.tag.read_model
    checkpoint = _checkpoint(spark, checkpoints, lake)
    # Used when there is no checkpoint: start at the table's offsets.
    start = lake.tag.changelog_offsets.for_spark(topic)
    options = (("startingOffsets", start), ("maxOffsetsPerTrigger", str(BATCH_RECORDS)))

    def merge(records: DataFrame, batch: int) -> None:
        session = records.sparkSession
        started_s = time.monotonic()
        offsets = batch_offsets(spark, checkpoint, batch, topic)
        known = complete_up_to if offsets.covers(lake.ends) else merging.tag.complete_up_to
        tag = replace(lake.tag, operation=OPERATION, changelog_offsets=offsets, complete_up_to=known)
        newest = lake.changelog.newest(records).persist()
        try:
            counts = count_records(newest)
            application = f"foldlake-compaction/{session.sparkContext.getLocalProperty(QUERY_ID)}"
            replace(lake.table, spark=session).merge(readable(newest), tag, application, batch)
        finally:
            newest.unpersist()
        merging.tag, merging.counts, merging.commits = tag, merging.counts + counts, merging.commits + 1
        LOG.info(
            "lake/%s: merged %s records of %s keys in %.1f s",
            name,
            f"{counts.records:,}",
            f"{counts.states + counts.deletions:,}",
            time.monotonic() - started_s,
        )

    stream = KafkaSource(lake.changelog.kafka, topic, options).read(spark)
    query = (
        stream.writeStream.queryName(f"compaction-{name}")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .foreachBatch(merge)
        .start()
    )
    query.awaitTermination()


def _checkpoint(spark: SparkSession, checkpoints: str, lake: LiveLake) -> str:
    """Return the checkpoint that continues from the table's offsets; remove one that does not, and those of other promotions.

    A killed run leaves an uncommitted batch, which may or may not have been merged. The table's tag records which offsets
    were merged, so the batch is not resumed; Spark 4.1 would fail to resume it (SPARK-55271).
    """
    folder = compaction_checkpoint(checkpoints, lake.tag.read_model, lake.version.number)
    current = f"{folder}/{lake.tag.promotion_id}"
    topic = lake.changelog.topic
    for checkpoint in [f"{folder}/{name}" for name in child_names(spark, folder)]:
        if checkpoint != current or not continues_from(spark, current, topic, lake.tag.changelog_offsets):
            remove_checkpoint(spark, checkpoint)
    return current


def main() -> None:
    """Run under spark-submit: for one read model, or for all declared ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", default="", help="name of one read model (default: all of them)")
    add_optimize_argument(parser)
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        if arguments.read_model:
            models = [read_model(arguments.read_model, settings.declaration_folders)]
        else:
            models = list(load_catalog(settings.declaration_folders).models.values())
        for model in models:
            done = compact(spark, settings, model, force_optimize=arguments.optimize == ALWAYS)
            if done is not None:
                LOG.info("%s", done)

    run_lake_job("compaction", job)


if __name__ == "__main__":
    main()
