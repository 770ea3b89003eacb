"""Program: compares a rebuild's version with the live version with DuckDB, without Spark, as far as FOLDLAKE_CHECK_ENGINE allows.

Its arguments are those of `spark_jobs/compare_versions.py`, and its exit status is that of a check. Does nothing if the check of the version
has compared them.
"""

import argparse
import sys

from include.quality.check_run import SparkNeededError, SparkReason, exit_status
from include.replay.quality_check import begin_program, done_with_duckdb
from include.settings import CheckEngine, Settings


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--version", required=True, type=int, help="number of the version")
    parser.add_argument("--run-id", required=True, help="identifies the comparison and its report")
    arguments = parser.parse_args()
    settings = begin_program()
    sys.exit(
        exit_status(
            lambda: compare_versions(settings, arguments.read_model, arguments.version, arguments.run_id)
        )
    )


def compare_versions(settings: Settings, read_model: str, number: int, run_id: str) -> None:
    """Compare a version with the live one, and write the report, unless it is there. May be killed and repeated at any point.

    Raises SparkNeededError, with nothing written, if FOLDLAKE_CHECK_ENGINE is `spark`; or if it is `auto`, and DuckDB cannot compare. Raises
    CannotCheckError if it is `duckdb` and DuckDB cannot compare.
    """
    if settings.quality.engine is CheckEngine.SPARK:
        raise SparkNeededError(SparkReason.of("FOLDLAKE_CHECK_ENGINE is spark"))
    # Only if DuckDB compares: it takes time and memory.
    from include.replay.check.version_comparison import compare_unless_written  # noqa: PLC0415

    done_with_duckdb(
        settings, read_model, lambda: compare_unless_written(settings, read_model, number, run_id)
    )


if __name__ == "__main__":
    main()
