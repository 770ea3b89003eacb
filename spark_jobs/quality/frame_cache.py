"""Caches the frames that a check uses more than once, until the check ends."""

from pyspark import StorageLevel
from pyspark.sql import DataFrame


class FrameCache:
    """The cached frames of one check. Unless released, they would stay cached until the session ends.

    have_few_rows: of few rows, the frame is computed at once, and a frame of the result returned. Planning the queries takes longer
    than running them, and a cached frame is planned, and compared with every other cached frame, in each query that uses it.
    """

    def __init__(self) -> None:
        self.have_few_rows = False
        self._frames: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a frame, in memory as far as it fits and otherwise on disk; returns the frame to use from now on."""
        if self.have_few_rows:
            return frame.localCheckpoint()
        # What Spark calls MEMORY_AND_DISK in Python also serializes and compresses what is in memory.
        frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._frames.append(frame)
        return frame

    def release(self) -> None:
        """Release all frames."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()
