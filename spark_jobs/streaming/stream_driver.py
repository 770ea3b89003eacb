"""The stream driver's loop: reconciles the queries with their specifications, polls them, and publishes their progress."""

import logging
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.waiting import wait_for
from spark_jobs.streaming.progress import ProgressPublisher
from spark_jobs.streaming.query_set import QuerySet
from spark_jobs.streaming.workers.driver_worker import DriverWorker

LOG = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5
RECONCILE_INTERVAL_S = 2.0
SLOTS_TIMEOUT_S = 300.0
SLOTS_POLL_S = 1.0


class StreamDriver:
    """Runs a set of queries, and further threads beside them, until SIGTERM or SIGINT. Without a publisher, it publishes no progress."""

    def __init__(
        self,
        spark: SparkSession,
        queries: QuerySet,
        publisher: ProgressPublisher | None,
        threads: Sequence[DriverWorker] = (),
    ) -> None:
        self._spark = spark
        self._queries = queries
        self._publisher = publisher
        self._threads = threads
        self._stop_signal: int | None = None

    def request_stop(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle a signal: end the loop.

        Does not use an event or the log: both take a lock, which the interrupted thread may be holding.
        """
        self._stop_signal = signal_number

    def run(self) -> None:
        """Run until a stop is requested, then stop the queries and the session.

        Raises QueryFailedError when an essential query has failed too often in a row.
        """
        try:
            self._loop()
        except Py4JError:
            # A signal to the whole process group can end the JVM before the queries have stopped.
            if self._stop_signal is None:
                raise
        finally:
            if self._stop_signal is not None:
                LOG.info("signal %s: stopping the queries", signal.Signals(self._stop_signal).name)
            with suppress(Py4JError, OSError):
                self._stop_all()

    def _loop(self) -> None:
        for thread in self._threads:
            thread.start()
        reconcile_at_s = 0.0
        while self._stop_signal is None:
            if time.monotonic() >= reconcile_at_s:
                self._queries.reconcile()
                reconcile_at_s = time.monotonic() + RECONCILE_INTERVAL_S
            self._queries.poll()
            if self._publisher is not None:
                self._publisher.publish(self._queries)
            time.sleep(POLL_INTERVAL_S)

    def _stop_all(self) -> None:
        for thread in self._threads:
            thread.stop()
        self._queries.stop()
        if self._publisher is not None:
            self._publisher.publish(self._queries, now=True)
            self._publisher.close()
        self._spark.stop()


def stop_on_signals(driver: StreamDriver) -> None:
    """Make SIGTERM and SIGINT stop the driver gracefully."""
    signal.signal(signal.SIGTERM, driver.request_stop)
    signal.signal(signal.SIGINT, driver.request_stop)


def wait_for_slots(spark: SparkSession, needed: int) -> None:
    """Wait until the cluster has allocated the task slots: with fewer, a real-time query never starts.

    Raises TimeoutError.
    """
    context = spark.sparkContext

    def log_slots(_waited_s: float) -> None:
        LOG.info("waiting for task slots: %d of %d", context.defaultParallelism, needed)

    if not wait_for(
        lambda: context.defaultParallelism >= needed,
        timeout_s=SLOTS_TIMEOUT_S,
        poll_s=SLOTS_POLL_S,
        while_waiting=log_slots,
    ):
        message = (
            f"The cluster has {context.defaultParallelism} task slots for the driver, which needs {needed}: add cores or "
            "workers, or lower FOLDLAKE_STREAM_SPARE_QUERIES or FOLDLAKE_STREAM_SHUFFLE_PARTITIONS."
        )
        raise TimeoutError(message)
    LOG.info("driver %d on %s with %d task slots", os.getpid(), context.master, context.defaultParallelism)
