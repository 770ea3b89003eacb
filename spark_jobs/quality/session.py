"""What a check works with: its Spark session, the log of its source, the frames that it caches, and the progress of its steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from include.settings import Settings
from include.work_progress import Progress, WorkProgress
from spark_jobs.quality.source_log import SourceLog
from spark_jobs.runtime.job_progress import progress_logged, tasks_logged
from spark_jobs.runtime.session import ONE_TASK, SMALL_DATA, session_settings


class CheckSession:
    """The Spark session of one check.

    title: of the check, in its log. report: also receives the progress of its steps.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        log: SourceLog,
        title: str,
        report: Callable[[Progress], None] | None = None,
    ) -> None:
        self.spark = spark
        self.settings = settings
        self.log = log
        self._title = title
        self._report = report
        self._has_few_rows = False
        self._frames: list[DataFrame] = []

    @contextmanager
    def sized(self, *, is_small: bool, is_incremental: bool) -> Iterator[None]:
        """Run the queries of a block of code as those of few rows, if they are.

        Then a frame is computed at once, and a frame of the result returned: planning the queries takes longer than running them, and a
        cached frame is planned, and compared with every other cached frame, in each query that uses it.
        """
        self._has_few_rows = is_small
        small = SMALL_DATA | (ONE_TASK if is_incremental else {})
        with session_settings(self.spark, small if is_small else {}):
            yield

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a frame, in memory as far as it fits and otherwise on disk; returns the frame to use from now on."""
        if self._has_few_rows:
            return frame.localCheckpoint()
        # What Spark calls MEMORY_AND_DISK in Python also serializes and compresses what is in memory.
        frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._frames.append(frame)
        return frame

    @contextmanager
    def reading(self, step: str, unit: str = "records", total: int | None = None) -> Iterator[None]:
        """Log during a block of code how many records a step has read.

        step: such as "replaying the log". total: the number of records that it reads, if known.
        """
        progress = WorkProgress(f"{self._title}: {step}", unit, total, self._report)
        with progress_logged(self.spark, progress):
            yield

    @contextmanager
    def computing(self, step: str) -> Iterator[None]:
        """Log during a block of code how many tasks a step has ended, which reads what other steps have cached."""
        progress = WorkProgress(
            f"{self._title}: {step}", "Spark tasks", None, self._report, is_total_final=False
        )
        with tasks_logged(self.spark, progress):
            yield

    def release(self) -> None:
        """Release the cached frames. They would stay cached until the Spark session ends."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()
