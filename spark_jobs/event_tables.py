"""Application: appends new events to the event tables of the lake, then runs OPTIMIZE and VACUUM."""

import argparse
import logging
import time
from collections import Counter
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from include.declarations.event_table import AppendedTable
from include.declarations.topic_tables import load_lake_catalog
from include.errors import FoldlakeError
from include.kafka.topic_state import TopicState, topic_state
from include.lake.tables import lake_lock, table_path
from include.lake.tags import APPEND, AppendTag
from include.position import Offsets
from include.settings import Settings
from spark_jobs.folding.replay import IdsOf, decoded_records, with_needed_schema_ids
from spark_jobs.lake.append_state import (
    ChangedTopicError,
    require_same_topic,
    tag_to_append_from,
    with_all_event_types,
)
from spark_jobs.lake.event_rows import OTHER_TYPE, ROW, EventDeltaTable, count_kinds
from spark_jobs.lake.table_update import ALWAYS, TableUpdate, Written, add_optimize_argument, update_table
from spark_jobs.runtime.lake_job import run_lake_job

LOG = logging.getLogger(__name__)
# Records in one commit: bounds the disk that it needs and the work that is repeated after a kill.
SLICE_RECORDS = 1_000_000


class AppendCounts(Counter[str]):
    """The number of the records read, by kind: a row, another event type, or the reason why one cannot be decoded."""

    def __str__(self) -> str:
        """Return the counts in words."""
        return f"{self.total():,} records read, {self[ROW]:,} rows appended"


Appends = TableUpdate[AppendTag, AppendCounts]


def append_new(
    spark: SparkSession,
    settings: Settings,
    declared: AppendedTable,
    *,
    force_optimize: bool = False,
    slice_records: int = SLICE_RECORDS,
) -> Appends | None:
    """Bring `lake/<event table>` up to the end of its topic. May be killed and repeated at any point.

    1. Read the offsets in the tag of the table's newest commit. They are the only record of what was appended.
    2. Read the topic from there, slice by slice, up to its end at the beginning. Each slice is one commit, whose tag has the offsets
       at its end.
    3. Run OPTIMIZE and VACUUM if they are due.

    Returns None when the topic does not exist yet.
    Raises LakeLockedError when another process writes to the table, ChangedTopicError when the topic was created again or ends before
    the offsets in the table, UnknownOffsetsError when a table with rows has no offsets, LakeTableError when the type of a field has changed.
    """
    started_s = time.monotonic()
    table = delta_table(spark, settings, declared)
    with lake_lock(settings.home, declared.name):
        topic = topic_state(settings.kafka_connection, declared.source_topic)
        if topic is None:
            LOG.info("lake/%s: topic %s does not exist yet", declared.name, declared.source_topic)
            return None
        tag = tag_to_append_from(table, topic)
        require_same_topic(table, tag, topic)
        table.ensure()
        tag = with_all_event_types(table, tag, topic)
        return update_table(
            table,
            partial(_append_slices, table, settings, topic, tag, slice_records),
            force_optimize=force_optimize,
            started_s=started_s,
        )


def _append_slices(
    table: EventDeltaTable, settings: Settings, topic: TopicState, tag: AppendTag, slice_records: int
) -> Written[AppendTag, AppendCounts]:
    written = Written(tag, AppendCounts())
    while not written.tag.offsets.covers(topic.ends):
        written.tag, appended = append_slice(table, settings, topic, written.tag, slice_records)
        written.counts.update(appended)
        written.commits += 1
    _report_unreadable(table.declared, written.counts)
    return written


def delta_table(spark: SparkSession, settings: Settings, declared: AppendedTable) -> EventDeltaTable:
    """Return the Delta table of an event table, which may not exist yet."""
    path = table_path(settings.lake_root, declared.name)
    return EventDeltaTable(spark, path, settings.lake.retention_h, declared)


def append_slice(
    table: EventDeltaTable, settings: Settings, topic: TopicState, tag: AppendTag, records: int
) -> tuple[AppendTag, Counter[str]]:
    """Append at most about `records` records of the topic to a table whose newest tag is `tag`.

    Returns the newest tag afterwards, and the counts of the records by kind. The caller must call again with this tag: it is that of
    another process, and the counts are empty, if one that was killed has appended from the same offsets on after all.
    """
    started_s = time.monotonic()
    source = table.declared.source_topic
    since = tag.offsets.merge(topic.starts)
    end = slice_end(since, topic.ends, records)
    lost = tag.offsets.events_until(since)
    if lost:
        LOG.error(
            "lake/%s lacks %d records of %s, which the topic deleted before they were appended. Hint: increase retention_ms of the topic, "
            "or run the compaction more often",
            table.name,
            lost,
            source,
        )

    def append(ids_of: IdsOf) -> tuple[AppendTag, Counter[str]]:
        decoded = decoded_records(table.spark, settings, table.declared.events, end, since, ids_of=ids_of)
        with table.classified(decoded) as rows:
            counts = Counter(count_kinds(rows))
            new = replace(
                tag,
                operation=APPEND,
                offsets=end,
                rows=tag.rows + counts[ROW],
                unreadable=tag.unreadable + counts.total() - counts[ROW] - counts[OTHER_TYPE],
                other_types=tag.other_types + counts[OTHER_TYPE],
                lost=tag.lost + lost,
            )
            # The version is where the slice begins, not where it ends: a commit of a killed process that arrives after all, and this
            # one, begin at the same offsets, so Delta accepts only one of them, even if they end at different ones.
            table.append(rows, new, _application(tag), sum(tag.offsets.values()))
        return new, counts

    new, counts = with_needed_schema_ids(append)
    newest = table.newest_tag()
    if newest is None or (newest.tag.offsets, newest.tag.generation) == (tag.offsets, tag.generation):
        raise ChangedTopicError(
            f"The commit of new events to lake/{table.name} is not in its history: another program has removed it. Hint: run "
            f"`./foldlake compact {table.name}` again."
        )
    if newest.tag != new:
        LOG.warning("lake/%s: a killed process had already appended from these offsets on", table.name)
        return newest.tag, Counter()
    LOG.info(
        "lake/%s: appended %s rows of %s records in %.1f s",
        table.name,
        f"{counts[ROW]:,}",
        f"{counts.total():,}",
        time.monotonic() - started_s,
    )
    return new, counts


def slice_end(offsets: Offsets, ends: Offsets, records: int) -> Offsets:
    """Return the end of the next slice of a topic: at most about `records` records, of all partitions that have some left alike."""
    unread = [partition for partition, end in ends.items() if end > offsets.of(partition)]
    share = max(1, records // max(1, len(unread)))
    return Offsets({p: max(offsets.of(p), min(end, offsets.of(p) + share)) for p, end in ends.items()})


def _application(tag: AppendTag) -> str:
    """Return Delta's `txnAppId` of appends: each generation of a table begins at the same offsets again."""
    name = f"foldlake-append/{tag.topic_id}"
    return f"{name}/{tag.generation}" if tag.generation else name


def _report_unreadable(declared: AppendedTable, counts: Counter[str]) -> None:
    unreadable = {kind: count for kind, count in counts.items() if kind not in {ROW, OTHER_TYPE}}
    if unreadable:
        LOG.warning(
            "skipped records of %s that cannot be decoded as %s: %s. Hint: find out which program wrote them",
            declared.source_topic,
            " or ".join(reader.name for reader in declared.events.readers),
            ", ".join(f"{kind}: {count:,}" for kind, count in sorted(unreadable.items())),
        )


def main() -> None:
    """Run under spark-submit: for one event table, or for all declared ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--event-table",
        default="",
        help="name of one event table, or `events` for those of topics (default: all of them)",
    )
    add_optimize_argument(parser)
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        failures = []
        for table in load_lake_catalog(settings).appended_tables(arguments.event_table):
            try:
                done = append_new(spark, settings, table, force_optimize=arguments.optimize == ALWAYS)
            except FoldlakeError as error:
                # One that is refused does not hold up the others.
                failures.append(error)
                LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
                continue
            if done is not None:
                LOG.info("%s", done)
        if failures:
            raise failures[0]

    run_lake_job("event-tables", job)


if __name__ == "__main__":
    main()
