"""Application: folds the events of a rebuild in one batch into staging, independently of the query, its decoder and the changelog.

The job overwrites the table `lake/_staging/<model>/v<N>` in one commit: killed at any point, it leaves either the old table
or the new one. The check of a rebuild compares it with the changelog.
"""

import argparse
import logging
import time

from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.lake.tables import staging_path
from include.lake.tags import CommitTag
from include.rebuild.stage_progress import StageReporter
from include.rebuild.stages.build import BUILD_STAGING
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.transitions import require_not_ended
from include.versions.version_lock import staging_lock
from include.versions.version_record import Stage
from include.work_progress import WorkProgress
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.lifetimes import unexpired
from spark_jobs.folding.replay import IdsOf, decoding, events_for_staging, source_ends
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.runtime.job_progress import progress_logged
from spark_jobs.runtime.lake_job import run_lake_job

LOG = logging.getLogger("foldlake.build_staging")
OPERATION = "staging"
# A killed job releases its lock within a second, and a check that reads the table when it ends.
LOCK_WAIT_S = 60.0


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--version", required=True, type=int, help="number of the version")
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        # Whoever removes the table waits until this job has ended.
        with staging_lock(settings.home, model.name, arguments.version, wait_s=LOCK_WAIT_S):
            build_staging(spark, settings, model, arguments.version)

    run_lake_job("build-staging", job)


def build_staging(spark: SparkSession, settings: Settings, model: ReadModel, number: int) -> None:
    """Fold the log up to its current end with the version's fold revision, and replace the version's staging table.

    Does nothing for a version that has already been promoted. Raises UnknownVersionError, VersionAbandonedError, ReadModelError.
    """
    with VersionRegistry(settings.kafka_connection) as registry:
        record = record_of(registry, model.name)
    stage = record.stage_of(number)
    if stage in (Stage.LIVE, Stage.PREVIOUS, Stage.RETIRED):
        LOG.info("v%d of %s is %s: no staging table needed", number, model.name, stage)
        return
    version = require_not_ended(record, number)
    model = model.reading(version.source_topic, version.starts)
    until = source_ends(settings.kafka_connection, model.source_topic)
    table = LakeTable(
        spark, staging_path(settings.lake_root, model.name, number), settings.lake.retention_h, model
    )
    table.ensure()
    tag = CommitTag(model.name, number, version.fold_revision, OPERATION, complete_up_to=until)
    progress = WorkProgress(
        f"staging of {model.name} v{number}",
        "events",
        model.starts.events_until(until),
        StageReporter(
            settings.kafka_connection,
            settings.topics.replication_factor,
            model.name,
            number,
            BUILD_STAGING.name,
        ),
    )
    started_s = time.monotonic()

    def write(ids_of: IdsOf) -> None:
        events = events_for_staging(
            spark, settings, model, until, revision=version.fold_revision, ids_of=ids_of
        )
        states = fold(model, version.fold_revision, events)
        states = unexpired(model, states, settings.stream)
        table.overwrite(table.with_all_columns(states), tag, settings.lake.shuffle_partitions)

    with progress_logged(spark, progress):
        decoding(spark, write)
    elapsed_s = time.monotonic() - started_s
    progress.reached(progress.total or 0, f"; staging written in {elapsed_s:.1f} s")


if __name__ == "__main__":
    main()
