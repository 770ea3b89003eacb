"""Application: the stream driver as launched by its supervisor. It folds every read model; its only options are the settings."""

import logging
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from pyspark.sql import SparkSession

from include.declarations.latency_override import stream_catalog
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.observability.logs import configure_logs
from include.process import die_with_parent
from include.settings import Settings
from include.spark.stream_config import stream_config, stream_task_slots
from include.stream.driver_launch import is_for_handover, is_standby, wait_for_turn
from include.waiting import wait_for
from spark_jobs.runtime.session import lower_compiler_priority, spark_session
from spark_jobs.streaming.fold_transfer import FoldGiver, FoldTaker
from spark_jobs.streaming.progress import ProgressPublisher
from spark_jobs.streaming.query_set import QuerySet, SpecDiscovery, spec_modules
from spark_jobs.streaming.read_model_setup import set_up_read_models
from spark_jobs.streaming.stream_context import StreamContext
from spark_jobs.streaming.stream_driver import StreamDriver, stop_on_signals, wait_for_slots
from spark_jobs.streaming.warm_up import warm_up

LOG = logging.getLogger("foldlake.stream")

SERVERS_TIMEOUT_S = 120.0
RETRY_INTERVAL_S = 2.0


def main() -> int:
    """Run until SIGTERM; returns the exit status."""
    settings = Settings()
    configure_logs(settings.log.format, "stream driver", path=settings.home / "logs" / "stream.log")
    # The JVM that launched this process writes to Kafka: neither process may outlive the other.
    die_with_parent()
    lower_compiler_priority()
    catalog = stream_catalog(settings)
    for failure in catalog.failures:
        LOG.error("%s", failure)
    modules = spec_modules()
    slots = stream_task_slots(settings)
    session: Future[SparkSession] = Future()
    try:
        with StreamContext(session.result, settings, catalog, "stream driver", is_driver=True) as context:
            with ThreadPoolExecutor(1, "set-up") as while_spark_starts:
                set_up = while_spark_starts.submit(_set_up, context)
                spark = spark_session("foldlake-stream", stream_config(settings))
            session.set_result(spark)
            set_up.result()
            wait_for_slots(spark, slots)
            discovery = SpecDiscovery(context, modules)
            queries = QuerySet(spark, context.consumer, discovery.specs, slots)
            publisher = ProgressPublisher(settings.kafka_connection, str(spark.sparkContext.master))
            transfer = FoldGiver(settings.home)
            driver = StreamDriver(spark, queries, publisher, discovery.workers(), transfer)
            if is_standby():
                queries.prepare()
                if is_for_handover():
                    queries.require_startable()
                queries.is_warm = warm_up(spark, context.consumer, [query.spec for query in queries])
                wait_for_turn(partial(driver.take, FoldTaker(settings.home)))
            stop_on_signals(driver)
            return driver.run()
    except (FoldlakeError, TimeoutError) as error:
        LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
        return 1


def _set_up(context: StreamContext) -> None:
    """Set up the read models; wait for servers that are still starting."""

    def try_once() -> bool:
        try:
            set_up_read_models(context)
        except (KafkaUnavailableError, RegistryUnavailableError) as error:
            LOG.warning("cannot set up the read models yet, retrying: %s", error)
            return False
        return True

    if not wait_for(try_once, timeout_s=SERVERS_TIMEOUT_S, poll_s=RETRY_INTERVAL_S):
        # A last attempt, which raises the error.
        set_up_read_models(context)


if __name__ == "__main__":
    sys.exit(main())
