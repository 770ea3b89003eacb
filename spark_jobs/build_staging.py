"""Application: folds the events of a rebuild in one batch into staging, independently of the query, its decoder and the changelog.

The job overwrites the table `lake/_staging/<model>/v<N>` in one commit: killed at any point, it leaves either the old table
or the new one. The check of a rebuild compares it with the changelog.
"""

import argparse
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel, read_model
from include.lake.tables import CommitTag, staging_path
from include.settings import Settings
from include.spark.lake_config import DECODE_ONCE
from include.versions.changes import record_of
from include.versions.registry import VersionRegistry
from include.versions.transitions import UnknownVersionError, VersionAbandonedError
from include.versions.version_record import UNFINISHED_STAGES, Stage, Version
from include.work_progress import WorkProgress
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.lifetimes import unexpired
from spark_jobs.folding.replay import IdsOf, events_for_staging, source_ends, with_needed_schema_ids
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.runtime.lake_job import run_lake_job
from spark_jobs.runtime.session import session_settings

LOG = logging.getLogger("foldlake.build_staging")
OPERATION = "staging"
POLL_INTERVAL_S = 0.5


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--version", required=True, type=int, help="number of the version")
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        build_staging(spark, settings, model, arguments.version)

    run_lake_job("build-staging", job)


def build_staging(spark: SparkSession, settings: Settings, model: ReadModel, number: int) -> None:
    """Fold the log up to its current end with the version's fold revision, and replace the version's staging table.

    Does nothing for a version that has already been promoted. Raises UnknownVersionError, VersionAbandonedError, ReadModelError.
    """
    version = _version(settings.kafka.bootstrap_servers, model, number)
    if version.stage not in UNFINISHED_STAGES:
        LOG.info("v%d of %s is %s: no staging table needed", number, model.name, version.stage)
        return
    model = model.reading(version.source_topic, version.starts)
    until = source_ends(settings.kafka.bootstrap_servers, model.source_topic)
    table = LakeTable(
        spark, model, staging_path(settings.lake_root, model.name, number), settings.lake.retention_h
    )
    table.ensure()
    tag = CommitTag(model.name, number, version.fold_revision, OPERATION, complete_up_to=until)
    progress = WorkProgress(f"staging of {model.name} v{number}", "events", model.starts.events_until(until))
    started_s = time.monotonic()

    def write(ids_of: IdsOf) -> None:
        events = events_for_staging(spark, settings, model, until, ids_of=ids_of)
        states = fold(model, version.fold_revision, events)
        if model.expires is not None:
            states = unexpired(model.expires, states, model.expires.after_s(settings.stream))
        table.overwrite(table.with_all_columns(states), tag, settings.lake.shuffle_partitions)

    with session_settings(spark, DECODE_ONCE), _progress_logged(spark, progress):
        with_needed_schema_ids(write)
    elapsed_s = time.monotonic() - started_s
    progress.reached(progress.total, f"; staging written in {elapsed_s:.1f} s")


def _version(bootstrap_servers: str, model: ReadModel, number: int) -> Version:
    with VersionRegistry(bootstrap_servers) as registry:
        version = record_of(registry, model.name).version(number)
    if version is None:
        raise UnknownVersionError(f"{model.name} has no version {number}: register a rebuild first.")
    if version.stage is Stage.ABANDONED:
        raise VersionAbandonedError(
            f"v{number} of {model.name} was abandoned: cannot build its staging table. Start another rebuild."
        )
    return version


@contextmanager
def _progress_logged(spark: SparkSession, progress: WorkProgress) -> Iterator[None]:
    """Log progress during a block: the share of finished tasks in the most advanced Spark stage, which reads the log."""
    is_done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def log_progress() -> None:
        done = 0
        while not is_done.wait(POLL_INTERVAL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            shares = [s.numCompletedTasks / s.numTasks for s in stages if s is not None and s.numTasks]
            done = max(done, int(max(shares, default=0) * progress.total))
            progress.reached(min(done, progress.total - 1))

    thread = threading.Thread(target=log_progress, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


if __name__ == "__main__":
    main()
