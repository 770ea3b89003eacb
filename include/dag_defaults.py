"""What every DAG has in common, as plain data: who owns it, when it began, how it is found."""

from datetime import UTC, datetime, timedelta
from typing import Any

# Fixed and past: with `@continuous`, a start date that moves makes the scheduler skip every second run for ever.
START_DATE = datetime(2024, 1, 1, tzinfo=UTC)
OWNER = "foldlake"

STREAM_DAG = "stream"
# Airflow's connection to Spark for the stream driver: the environment variable AIRFLOW_CONN_STREAM_SPARK defines it.
SPARK_STREAM_CONNECTION = "stream_spark"


def dag_arguments(*tags: str) -> dict[str, Any]:
    """Return the arguments that every DAG is made with."""
    return {
        "start_date": START_DATE,
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["foldlake", *tags],
        "default_args": {"owner": OWNER, "retry_delay": timedelta(seconds=1)},
    }
