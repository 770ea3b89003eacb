"""The stream driver's loop: reconciles the queries with their specifications, polls them, and publishes their progress."""

import logging
import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.stream.driver_launch import writes_cache
from include.stream.query_transfer import HANDED_OVER
from include.waiting import wait_for
from spark_jobs.streaming.fold_transfer import FoldGiver, FoldTaker
from spark_jobs.streaming.progress import ProgressPublisher
from spark_jobs.streaming.query_set import QuerySet
from spark_jobs.streaming.supervised_query import SupervisedQuery
from spark_jobs.streaming.workers.driver_worker import DriverWorker

LOG = logging.getLogger(__name__)

# Events that a query waits for are found within this time and that of a request.
POLL_INTERVAL_S = 0.2
TRANSFER_POLL_S = 0.2
RECONCILE_INTERVAL_S = 2.0
SLOTS_TIMEOUT_S = 300.0
SLOTS_POLL_S = 1.0


class StreamDriver:
    """Runs a set of queries, and further threads beside them, until SIGTERM or SIGINT. Without a publisher, it publishes no progress.

    transfer: passes the folds to a new driver; None: without a supervisor, which launches one.
    """

    def __init__(
        self,
        spark: SparkSession,
        queries: QuerySet,
        publisher: ProgressPublisher | None,
        threads: Sequence[DriverWorker] = (),
        transfer: FoldGiver | None = None,
    ) -> None:
        self._spark = spark
        self._queries = queries
        self._publisher = publisher
        self._threads = threads
        self._transfer = transfer
        self._reconcile_at_s = 0.0
        self._stop_signal: int | None = None
        # The exit status; None while it runs.
        self._status: int | None = None
        self._wake_up, self._waker = os.pipe()

    def request_stop(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle a signal: end the loop, which may be waiting.

        Does not use an event or the log: both take a lock, which the interrupted thread may be holding.
        """
        self._stop_signal = signal_number
        os.write(self._waker, b"\0")

    def run(self) -> int:
        """Run until a stop is requested, or all folds are passed to a new driver, then stop the queries and the session; return the exit status.

        Raises QueryFailedError when an essential query has failed too often in a row.
        """
        try:
            for thread in self._threads:
                thread.start()
            while self._stop_signal is None and self._status is None:
                self._step()
            self._status = self._status or 0
        except Py4JError:
            # A signal to the whole process group can end the JVM before the queries have stopped.
            if self._stop_signal is None:
                raise
        finally:
            if self._stop_signal is not None:
                LOG.info("signal %s: stopping the queries", signal.Signals(self._stop_signal).name)
            with suppress(Py4JError, OSError):
                self._stop_all()
        return self._status or 0

    def _step(self) -> None:
        self._reconcile()
        transfer = self._transfer
        if transfer is None or not transfer.is_under_way():
            self._queries.poll()
            self._publish(self._queries)
            self._wait(POLL_INTERVAL_S)
            return
        self._queries.poll_own(transfer.is_own)
        if transfer.step(self._queries):
            LOG.info("the new driver has all folds")
            self._status = HANDED_OVER
        self._publish(filter(transfer.is_own, self._queries))
        self._wait(TRANSFER_POLL_S)

    def take(self, transfer: FoldTaker) -> None:
        """Take the folds that the present driver passes; called again and again until this driver gets its turn."""
        if transfer.is_under_way():
            self._reconcile()
            self._queries.poll_own(transfer.is_own)
            transfer.require_no_failure(self._queries)
            self._publish(filter(transfer.is_own, self._queries))

    def _reconcile(self) -> None:
        if time.monotonic() >= self._reconcile_at_s:
            self._queries.reconcile()
            self._reconcile_at_s = time.monotonic() + RECONCILE_INTERVAL_S

    def _publish(self, queries: Iterable[SupervisedQuery], *, now: bool = False) -> None:
        if self._publisher is not None:
            self._publisher.publish(list(queries), now=now)

    def _wait(self, seconds: float) -> None:
        """Wait for so long, or until a signal."""
        if self._status is None:
            select.select([self._wake_up], [], [], seconds)

    def _stop_all(self) -> None:
        for thread in self._threads:
            thread.request_stop()
        # The queries go on meanwhile.
        for thread in self._threads:
            thread.stop()
        own: list[SupervisedQuery] = list(self._queries)
        if self._transfer is not None and self._transfer.is_under_way():
            # The new driver reports the others.
            own = list(filter(self._transfer.is_own, own))
        self._queries.stop()
        self._publish(own, now=True)
        if self._publisher is not None:
            self._publisher.close()
        if self._status is not None and self._may_halt:
            # Spark's own end takes half a second. The next driver removes the temporary files.
            jvm: Any = self._spark._jvm  # noqa: SLF001 - PySpark has no public access to the JVM
            jvm.java.lang.Runtime.getRuntime().halt(self._status)
        else:
            self._spark.stop()

    @property
    def _may_halt(self) -> bool:
        """Not on a cluster, whose executors have to end first, nor in a training, whose JVM writes an archive when it exits."""
        is_local = str(self._spark.sparkContext.master).startswith("local")
        return self._transfer is not None and is_local and not writes_cache()


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
