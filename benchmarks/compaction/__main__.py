"""Compaction: merging 1 % of the keys as the table grows, the files after a thousand compactions, and short jobs with the job server."""

import argparse
import tempfile
from pathlib import Path

from benchmarks.compaction import jobs
from benchmarks.compaction.tables import grow, repeat
from benchmarks.support.report import print_environment
from include.spark.lake_config import lake_config
from spark_jobs.runtime.session import spark_session
from stack.tools import Tools
from tests.support.temporary_stack import temporary_settings, temporary_stack


def main() -> None:
    """Measure a growing table, many compactions of a small one, and short jobs."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--keys",
        default="100000,500000,1000000,2500000,5000000",
        help="sizes of the growing table, ascending",
    )
    arguments.add_argument(
        "--compactions", type=int, default=1000, help="compactions of the small table (1,000)"
    )
    arguments.add_argument("--small-keys", type=int, default=10_000, help="keys of the small table (10,000)")
    arguments.add_argument(
        "--retention-s", type=float, default=60.0, help="file retention of the small table (60)"
    )
    arguments.add_argument("--jobs", type=int, default=5, help="short jobs of each kind (5)")
    arguments.add_argument("--job-records", type=int, default=500, help="records of a short job (500)")
    options = arguments.parse_args()
    sizes = [int(size) for size in options.keys.split(",") if size]
    with tempfile.TemporaryDirectory(prefix="foldlake-") as directory:
        print_environment(temporary_settings(Path(directory)))
        in_one_session(sizes, options.compactions, options.small_keys, options.retention_s)
        jobs.measure(Path(directory), options.jobs, options.job_records)


def in_one_session(sizes: list[int], compactions: int, small_keys: int, retention_s: float) -> None:
    """Measure compactions in the Spark session of this process."""
    if not sizes and not compactions:
        return
    with temporary_stack(("kafka", "registry"), lake_retention_h=retention_s / 3600) as settings:
        jars = Tools(settings.tools).jars("lake")
        spark = spark_session("benchmark", lake_config(settings.lake), master=settings.lake.master, jars=jars)
        try:
            grow(spark, settings, sizes)
            repeat(spark, settings, compactions, small_keys)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
