"""The stream driver as Airflow launches it through spark-submit: every read model, everything from the settings."""

import logging
import sys
import time

from include.declarations.read_model import load_read_models
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.parent_death import die_with_parent
from include.settings import Settings
from include.spark.stream_config import source_partitions, stream_config
from include.stream.slot_planning import task_slots
from spark_jobs.runtime.session import spark_session
from spark_jobs.streaming.active_versions import ActiveVersions
from spark_jobs.streaming.progress import ProgressPublisher
from spark_jobs.streaming.stream_driver import (
    StreamDriver,
    listen,
    log_driver,
    stop_on_signals,
    wait_for_slots,
)

LOG = logging.getLogger("foldlake.stream")

SERVERS_TIMEOUT_S = 120.0
RETRY_INTERVAL_S = 2.0


def main() -> int:
    """Run until SIGTERM; returns the exit status."""
    settings = Settings()
    log_driver(settings.home / "logs" / "stream.log")
    # The JVM that launched this process writes to Kafka: without it, or without us, nothing may go on.
    die_with_parent()
    models = load_read_models(settings.read_models_dir)
    spark = spark_session("foldlake-stream", stream_config(settings))
    try:
        wait_for_slots(spark, task_slots(settings, source_partitions(settings)))
        active = ActiveVersions(spark, settings, models)
        _prepare(active)
        publisher = ProgressPublisher(
            settings.kafka.bootstrap_servers, str(spark.sparkContext.master), listen(spark)
        )
        driver = StreamDriver(spark, active.reconcile, active.dead_letter_queries(), publisher)
        stop_on_signals(driver)
        driver.run()
    except (FoldlakeError, TimeoutError) as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is all that is to be said
        return 1
    return 0


def _prepare(active: ActiveVersions) -> None:
    """Prepare topics, schemas and versions, waiting for servers that are just starting."""
    deadline_s = time.monotonic() + SERVERS_TIMEOUT_S
    while True:
        try:
            active.prepare()
        except (KafkaUnavailableError, RegistryUnavailableError) as error:
            if time.monotonic() > deadline_s:
                raise
            LOG.warning("waiting: %s", error)
            time.sleep(RETRY_INTERVAL_S)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
