"""Returns to the system what a job has left in a process that waits for the next one: free heap of the JVM, and freed memory of Python."""

import ctypes
import gc
import sys

from pyspark.sql import SparkSession

# The first collection ends with the size of the heap that the job needed; the second one shrinks it to what is left.
COLLECTIONS = 2


def release_memory(spark: SparkSession) -> None:
    """Release the memory of a job that has ended; takes less than a second.

    The JVM needs the options of SHRINK_HEAP (include/spark/lake_config.py): without them it keeps a heap that it has once used.
    """
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - Spark has no other way to it from Python
    if jvm is not None:
        for _ in range(COLLECTIONS):
            jvm.java.lang.System.gc()
    gc.collect()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    _trim_heap()


def _trim_heap() -> None:
    """Have the C library return its free memory, where it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
