"""Frames that are kept while a check looks at them more than once, and let go of when it is over."""

from pyspark import StorageLevel
from pyspark.sql import DataFrame


class FrameCache:
    """The frames that one check keeps. A session that goes on would otherwise hold them, and search them, for ever."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Have a frame computed once, in memory as far as it goes and on disk beyond; returns it."""
        frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._frames.append(frame)
        return frame

    def release(self) -> None:
        """Let go of all of them."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()
