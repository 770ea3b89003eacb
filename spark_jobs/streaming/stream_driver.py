"""The stream driver: keeps one running query for every active version, and one for the dead letters of every source."""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_jobs.streaming.progress import ProgressListener, ProgressPublisher
from spark_jobs.streaming.supervised_query import Phase, SupervisedQuery

LOG = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5
RECONCILE_INTERVAL_S = 2.0
SLOTS_TIMEOUT_S = 300.0

CAUGHT_UP = {Phase.REAL_TIME, Phase.REFUSED, Phase.STOPPED}


class StreamDriver:
    """Polls its queries until it is told to stop.

    `reconcile` is asked every two seconds which queries should run now, by name; it returns the same object for a query that
    goes on. `dead_letter_queries` are started once no fold is catching up: they would only slow it down.
    """

    def __init__(
        self,
        spark: SparkSession,
        reconcile: Callable[[dict[str, SupervisedQuery]], dict[str, SupervisedQuery]],
        dead_letter_queries: Iterable[SupervisedQuery],
        publisher: ProgressPublisher | None,
    ) -> None:
        self._spark = spark
        self._reconcile = reconcile
        self._dead_letters = list(dead_letter_queries)
        self._publisher = publisher
        self._queries: dict[str, SupervisedQuery] = {}
        self._stop_signal: int | None = None

    def request_stop(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM and SIGINT: leave the loop.

        Takes no lock, so neither an event nor a log line: the thread that it interrupts may hold that very lock.
        """
        self._stop_signal = signal_number

    def run(self) -> None:
        """Run until told to stop, then stop the queries and the session.

        Raises QueryFailedError when a query cannot be brought to go on.
        """
        try:
            self._loop()
        except Py4JError:
            # A signal to the whole process group ends the JVM under our hands.
            if self._stop_signal is None:
                raise
        finally:
            if self._stop_signal is not None:
                LOG.info("signal %s: stopping the queries", signal.Signals(self._stop_signal).name)
            with suppress(Py4JError, OSError):
                self._stop_all()

    def _loop(self) -> None:
        reconcile_at_s = 0.0
        while self._stop_signal is None:
            if time.monotonic() >= reconcile_at_s:
                self._apply(self._reconcile(self._queries))
                reconcile_at_s = time.monotonic() + RECONCILE_INTERVAL_S
            for query in self._due():
                query.poll()
            self._publish()
            time.sleep(POLL_INTERVAL_S)

    def _apply(self, wanted: dict[str, SupervisedQuery]) -> None:
        for name in self._queries.keys() - wanted.keys():
            LOG.info("query %s is no longer wanted: stopping it", name)
            self._queries[name].stop()
        self._queries = wanted

    def _due(self) -> list[SupervisedQuery]:
        folds = list(self._queries.values())
        running = any(query.phase is not Phase.STARTING for query in self._dead_letters)
        caught_up = all(
            query.phase in CAUGHT_UP or (query.phase is Phase.FAILED and not query.is_essential)
            for query in folds
        )
        return folds + (self._dead_letters if running or caught_up else [])

    def _publish(self, *, now: bool = False) -> None:
        if self._publisher is not None:
            self._publisher.publish([*self._queries.values(), *self._dead_letters], now=now)

    def _stop_all(self) -> None:
        for query in [*self._queries.values(), *self._dead_letters]:
            query.stop()
        self._publish(now=True)
        if self._publisher is not None:
            self._publisher.close()
        self._spark.stop()


def stop_on_signals(driver: StreamDriver) -> None:
    """Have SIGTERM and SIGINT end the driver in good order."""
    signal.signal(signal.SIGTERM, driver.request_stop)
    signal.signal(signal.SIGINT, driver.request_stop)


def listen(spark: SparkSession) -> ProgressListener:
    """Attach a progress listener to the session and return it."""
    listener = ProgressListener()
    spark.streams.addListener(listener)
    return listener


def wait_for_slots(spark: SparkSession, needed: int) -> None:
    """Wait until the cluster gives this application enough task slots: with fewer, a real-time query waits for ever.

    Raises TimeoutError when it does not in time.
    """
    deadline_s = time.monotonic() + SLOTS_TIMEOUT_S
    context = spark.sparkContext
    while context.defaultParallelism < needed:
        if time.monotonic() > deadline_s:
            message = (
                f"The cluster gives {context.defaultParallelism} task slots, but {needed} are needed: add cores or "
                "workers, or lower FOLDLAKE_STREAM_SPARE_QUERIES or FOLDLAKE_STREAM_SHUFFLE_PARTITIONS."
            )
            raise TimeoutError(message)
        LOG.info("waiting for task slots: %d of %d", context.defaultParallelism, needed)
        time.sleep(1)
    LOG.info("driver %d on %s with %d task slots", os.getpid(), context.master, context.defaultParallelism)
