"""Application: the catch-up of a rebuild. It folds a version in stage BUILDING, from the first event to the end of the log.

It runs the stream driver's query on the same checkpoint and changelog, but in large batches instead of real-time mode. After a
kill at any point, a restart continues from the last committed batch. It is an application of its own, at a low
priority, so that it takes neither time nor task slots from the live versions.
"""

import argparse
import logging
import sys
import time

from include.declarations.catalog import Catalog
from include.declarations.load import read_model
from include.errors import FoldlakeError
from include.process import die_with_parent
from include.rebuild.stage_progress import StageReporter
from include.rebuild.stages.build import CATCH_UP
from include.settings import Settings
from include.spark.stream_config import stream_config
from include.stream.query_reports import Phase
from include.versions.registry import VersionRegistry, record_of
from include.versions.transitions import require_not_ended
from include.versions.version_lock import version_lock
from include.versions.version_record import Stage, Version
from include.work_progress import WorkProgress
from spark_jobs.runtime.job_progress import RecordsRead
from spark_jobs.runtime.session import configure_logging, spark_session
from spark_jobs.streaming.specs.folds import catch_up_spec
from spark_jobs.streaming.stream_context import StreamContext
from spark_jobs.streaming.supervised_query import SupervisedQuery
from spark_jobs.streaming.workers.expiry_sweeper import sweep_once

LOG = logging.getLogger("foldlake.catch_up")
POLL_INTERVAL_S = 0.5
STAGE_CHECK_INTERVAL_S = 2.0
# A killed catch-up releases its lock within a second, and a clean-up within seconds.
LOCK_WAIT_S = 60.0


def main() -> int:
    """Run until the version is caught up; returns the exit status."""
    configure_logging()
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True)
    parser.add_argument("--version", required=True, type=int)
    arguments = parser.parse_args()
    settings = Settings()
    try:
        catch_up(settings, arguments.read_model, arguments.version)
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
        return 1
    return 0


def catch_up(settings: Settings, name: str, number: int) -> None:
    """Fold the version up to the end of the log; does nothing for a version that has already been handed over.

    Raises VersionAbandonedError as soon as the version is abandoned, StartRefusedError when the read model lacks the
    version's fold, QueryFailedError after too many consecutive failures of the query.
    """
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as versions:
        version = require_not_ended(record_of(versions, name), number)
    if version.stage is not Stage.BUILDING:
        LOG.info("v%d of %s is %s: the stream driver folds it; nothing to do", number, name, version.stage)
        return
    model = read_model(name, settings.declaration_folders).reading(version.source_topic, version.starts)
    spark = spark_session(f"foldlake-catch-up-{name}-v{number}", stream_config(settings))
    try:
        with StreamContext(
            lambda: spark, settings, Catalog({name: model}), f"catch up of {name} v{number}"
        ) as context:
            context.register_event_types(model)
            spec = catch_up_spec(context, model, version, settings.rebuild.batch_events)
            # Whoever removes what an ended version leaves holds the lock: nothing is created afterwards.
            with version_lock(settings.home, name, number, wait_s=LOCK_WAIT_S):
                require_not_ended(record_of(context.versions, name), number)
                # A supervised query retries a refused start; a rebuild must fail instead.
                spec.prepare()
            report = StageReporter(
                settings.kafka_connection,
                settings.topics.replication_factor,
                name,
                number,
                CATCH_UP.name,
            )
            _run(context, SupervisedQuery(spark, spec, context.consumer), version, name, report)
            if model.expires is not None:
                removed = sweep_once(
                    settings.kafka_connection,
                    context.schema_registry,
                    model.expires,
                    model.expires.after_s(settings.stream),
                    version.changelog_topic,
                )
                LOG.info("v%d of %s: removed %d expired keys", number, name, removed)
    finally:
        spark.stop()


def _run(
    context: StreamContext, query: SupervisedQuery, version: Version, name: str, report: StageReporter
) -> None:
    lag = query.events_behind()
    skipped = sum(version.starts.values())
    already_folded = sum(query.checkpoint.offsets.values()) - skipped
    end = already_folded + lag
    progress = WorkProgress(f"catch up of {name} v{version.number}", "events", end, report)
    progress.reached(already_folded)
    read = RecordsRead(context.spark)
    next_check_s = 0.0
    try:
        while query.phase is not Phase.STOPPED:
            query.poll()
            folded = _folded_events(query, already_folded, skipped)
            # A batch ends when all its events are folded: the events read so far move meanwhile.
            progress.reached(max(folded, min(already_folded + read.total(), end - 1)))
            if time.monotonic() >= next_check_s:
                next_check_s = time.monotonic() + STAGE_CHECK_INTERVAL_S
                require_not_ended(record_of(context.versions, name), version.number)
            time.sleep(POLL_INTERVAL_S)
    finally:
        query.stop()
    total = sum(query.checkpoint.offsets.values()) - skipped
    progress.total = max(total, end)
    progress.reached(total)


def _folded_events(query: SupervisedQuery, already_folded: int, skipped: int) -> int:
    batch = query.batches.last
    return max(already_folded, sum(batch.end_offsets.values()) - skipped if batch else 0)


if __name__ == "__main__":
    sys.exit(main())
