"""Application: checks stored records against the log. Its arguments and its exit status are those of every check.

See include/quality/check_run.py.
"""

import sys

from pyspark.sql import SparkSession

from include.observability.logs import configure_logs
from include.process import die_with_parent
from include.quality.check import CheckRequest, CheckResult
from include.quality.check_run import SparkReason, exit_status, parse, publish, staging_kept
from include.settings import Settings
from spark_jobs.quality.run import run_check
from spark_jobs.runtime.lake_job import lake_session


def main() -> None:
    """Run under spark-submit."""
    request, reason = parse(sys.argv[1:])
    die_with_parent()
    settings = Settings()
    configure_logs(settings.log.format, "quality check")

    def checked() -> CheckResult:
        with lake_session("quality", settings) as spark, staging_kept(settings.home, request):
            return check(spark, settings, request, reason)

    sys.exit(exit_status(checked))


def check(
    spark: SparkSession, settings: Settings, request: CheckRequest, reason: SparkReason | None = None
) -> CheckResult:
    """Run the check and publish its result; see `publish`. reason: why Spark checks, if it is known."""
    explain = (reason or SparkReason()).explain
    return publish(settings, request, lambda: explain(run_check(spark, settings, request)))


if __name__ == "__main__":
    main()
