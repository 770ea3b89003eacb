"""The frames that a check uses more than once, cached until it is over."""

from pyspark import StorageLevel
from pyspark.sql import DataFrame


class FrameCache:
    """The cached frames of one check. The session would otherwise hold them, and search them, until it ends."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a frame, in memory as far as there is any and on disk beyond; returns it."""
        frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._frames.append(frame)
        return frame

    def release(self) -> None:
        """Free all of them."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()
