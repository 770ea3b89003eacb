"""A rebuild's catch-up: folds a version that is BUILDING from the first event to the log's end, as the stream driver will.

The very same query, checkpoint and changelog as the driver's, with large batches instead of real-time mode. Killed at any
point and started again, it goes on from its last committed batch.
"""

import argparse
import logging
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.declarations.read_model import read_model
from include.errors import FoldlakeError
from include.kafka.log_reading import log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client
from include.parent_death import die_with_parent
from include.settings import Settings
from include.spark.stream_config import stream_config
from include.versions.registry import VersionRegistry
from include.versions.transitions import UnknownVersionError, record_of, require_not_ended
from include.versions.version_record import Stage, Version
from include.work_progress import WorkProgress
from spark_jobs.folding.schema_cache import RegistrySchemas
from spark_jobs.runtime.session import spark_session
from spark_jobs.streaming.progress import ProgressListener
from spark_jobs.streaming.stream_driver import listen, log_driver
from spark_jobs.streaming.supervised_query import Phase
from spark_jobs.streaming.version_query import VersionQuery
from spark_jobs.streaming.version_query_factory import VersionQueries

LOG = logging.getLogger("foldlake.catch_up")
POLL_INTERVAL_S = 0.5
STAGE_CHECK_INTERVAL_S = 2.0


class CatchUpQuery(VersionQuery):
    """A version's query that only catches up; STOPPED once it is so near to the log's end that the driver may take over."""

    def _start_query(self) -> tuple[StreamingQuery, Phase]:
        return self._catch_up(), Phase.CATCHING_UP

    def _finished(self) -> None:
        if self.events_behind() <= self._pace.catch_up_threshold_events:
            self.stop()


def main() -> int:
    """Run to the end; returns the exit status."""
    log_driver()
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True)
    parser.add_argument("--version", required=True, type=int)
    arguments = parser.parse_args()
    settings = Settings()
    try:
        catch_up(settings, arguments.read_model, arguments.version)
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is all that is to be said
        return 1
    return 0


def catch_up(settings: Settings, name: str, number: int) -> None:
    """Fold the version up to the log's end; does nothing where it was handed over already.

    Raises VersionAbandonedError as soon as the version is given up, QueryFailedError when the query fails for good.
    """
    versions = VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor)
    version = require_not_ended(record_of(versions, name), number)
    if version.stage is not Stage.BUILDING:
        LOG.info(
            "v%d of %s is %s: the stream driver folds it, nothing is left to do", number, name, version.stage
        )
        return
    model = read_model(name, settings.read_models_dir)
    registry = SchemaRegistry(settings.registry.url)
    for schema in model.event_schemas:
        registry.register(model.source_topic, schema)
    spark = spark_session(f"foldlake-catch-up-{name}-v{number}", stream_config(settings))
    try:
        queries = VersionQueries(
            spark,
            settings.changed(stream_catch_up_batch_events=settings.rebuild.batch_events),
            admin_client(settings.kafka.bootstrap_servers),
            log_consumer(settings.kafka.bootstrap_servers),
            registry,
        )
        query = queries.query(CatchUpQuery, model, version, RegistrySchemas(registry, model.source_topic))
        if query.phase is Phase.REFUSED:
            raise UnknownVersionError(query.last_error)
        _follow(spark, query, versions, version, name)
    finally:
        spark.stop()


def _follow(
    spark: SparkSession, query: CatchUpQuery, versions: VersionRegistry, version: Version, name: str
) -> None:
    listener = listen(spark)
    behind = query.events_behind()
    already = sum(query.committed_offsets.values())
    progress = WorkProgress(f"catch up of {name} v{version.number}", "events", already + behind)
    progress.reached(already)
    next_check_s = 0.0
    try:
        while query.phase is not Phase.STOPPED:
            query.poll()
            progress.reached(_reached(listener, query.name, already))
            if time.monotonic() >= next_check_s:
                next_check_s = time.monotonic() + STAGE_CHECK_INTERVAL_S
                require_not_ended(record_of(versions, name), version.number)
            time.sleep(POLL_INTERVAL_S)
    finally:
        query.stop()
    total = sum(query.committed_offsets.values())
    progress.total = max(total, progress.total)
    progress.reached(total)


def _reached(listener: ProgressListener, query_name: str, already: int) -> int:
    batch = listener.by_query.get(query_name)
    return max(already, sum(batch.end_offsets.values()) if batch else 0)


if __name__ == "__main__":
    sys.exit(main())
