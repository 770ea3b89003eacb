"""The progress of a Spark job while it runs: how many records its tasks have read so far."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.work_progress import LOG_INTERVAL_S, WorkProgress

POLL_INTERVAL_S = 0.5


class RecordsRead:
    """Counts the records that tasks have read from sources and caches, of all stages seen running since it was created.

    On a cluster, running tasks report every `spark.executor.heartbeatInterval`. On one machine, Spark has no such reports: a task is counted
    when it has ended.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - PySpark's tracker counts tasks, not records
        self._by_stage: dict[int, int] = {}
        self._running: set[int] = set()

    def total(self) -> int:
        """Return the number of records read so far."""
        active = self._store.activeStages()
        stages = [active.apply(number) for number in range(active.size())]
        found = {int(stage.stageId()): int(stage.inputRecords()) for stage in stages}
        for ended in self._running - found.keys():
            found[ended] = self._last(ended)
        self._running = {int(stage.stageId()) for stage in stages}
        for stage, records in found.items():
            self._by_stage[stage] = max(records, self._by_stage.get(stage, 0))
        return sum(self._by_stage.values())

    def _last(self, stage: int) -> int:
        try:
            return int(self._store.lastStageAttempt(stage).inputRecords())
        except Py4JError:
            # Spark has forgotten it.
            return 0


@contextmanager
def progress_logged(spark: SparkSession, progress: WorkProgress) -> Iterator[None]:
    """Log during a block of code how many records its Spark jobs have read; the caller logs the end. A short block logs nothing."""
    is_done = threading.Event()
    read = RecordsRead(spark)

    def log_progress() -> None:
        is_done.wait(LOG_INTERVAL_S)
        while not is_done.wait(POLL_INTERVAL_S):
            records = read.total()
            progress.reached(records if progress.total is None else min(records, progress.total - 1))

    thread = threading.Thread(target=log_progress, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
