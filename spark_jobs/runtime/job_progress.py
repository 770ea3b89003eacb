"""The progress of a Spark job while it runs: how many records its tasks have read, or how many tasks have ended."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from include.work_progress import LOG_INTERVAL_S, WorkProgress

POLL_INTERVAL_S = 0.5


class _Stages:
    """The stages of a Spark context that run, and those that have ended since the last look.

    The status store is internal to Spark.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - PySpark's tracker has no records, and needs the ids of jobs
        self._running: set[int] = set()

    def _look(self) -> tuple[dict[int, Any], set[int]]:
        """Return the running stages by their ids, and the ids of those that have ended."""
        active = self._store.activeStages()
        stages = [active.apply(number) for number in range(active.size())]
        running = {int(stage.stageId()): stage for stage in stages}
        ended, self._running = self._running - running.keys(), set(running)
        return running, ended


class RecordsRead(_Stages):
    """Counts the records that tasks have read from sources and caches, of all stages seen running since it was created.

    On a cluster, running tasks report every `spark.executor.heartbeatInterval`. On one machine, Spark has no such reports: a task is counted
    when it has ended.
    """

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._by_stage: dict[int, int] = {}

    def total(self) -> int:
        """Return the number of records read so far."""
        running, ended = self._look()
        found = {number: int(stage.inputRecords()) for number, stage in running.items()}
        for stage, records in (found | {number: self._last(number) for number in ended}).items():
            self._by_stage[stage] = max(records, self._by_stage.get(stage, 0))
        return sum(self._by_stage.values())

    def _last(self, stage: int) -> int:
        try:
            return int(self._store.lastStageAttempt(stage).inputRecords())
        except Py4JError:
            # Spark has forgotten it.
            return 0


class TasksEnded(_Stages):
    """Counts the tasks of all stages seen running since it was created: those that have ended, and those that are planned so far."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._by_stage: dict[int, tuple[int, int]] = {}

    def counts(self) -> tuple[int, int]:
        """Return the number of tasks that have ended, and of all that are known."""
        running, ended = self._look()
        for number in ended:
            self._by_stage[number] = (self._by_stage[number][1],) * 2
        for number, stage in running.items():
            self._by_stage[number] = int(stage.numCompleteTasks()), int(stage.numTasks())
        done, known = zip(*self._by_stage.values(), strict=True) if self._by_stage else ((), ())
        return sum(done), sum(known)


@contextmanager
def progress_logged(spark: SparkSession, progress: WorkProgress) -> Iterator[None]:
    """Log during a block of code how many records its Spark jobs have read; the caller logs the end. A short block logs nothing."""
    read = RecordsRead(spark)

    def reached() -> None:
        records = read.total()
        progress.reached(records if progress.total is None else min(records, progress.total - 1))

    with _polled(reached):
        yield


@contextmanager
def tasks_logged(spark: SparkSession, progress: WorkProgress) -> Iterator[None]:
    """Log during a block of code how many tasks its Spark jobs have ended, of those that are planned so far.

    For jobs that read what is cached: Spark counts a cached batch of thousands of records as one record.
    """
    tasks = TasksEnded(spark)

    def reached() -> None:
        done, progress.total = tasks.counts()
        if progress.total:
            progress.reached(min(done, progress.total - 1))

    with _polled(reached):
        yield


@contextmanager
def _polled(reached: Callable[[], None]) -> Iterator[None]:
    is_done = threading.Event()

    def log_progress() -> None:
        is_done.wait(LOG_INTERVAL_S)
        while not is_done.wait(POLL_INTERVAL_S):
            reached()

    thread = threading.Thread(target=log_progress, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
