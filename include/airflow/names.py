"""Names that DAGs, stack and command line share, and the arguments common to all DAGs. Does not import Airflow."""

from datetime import UTC, datetime, timedelta
from typing import Any

from include.rebuild.stage import Slot

# Fixed and in the past: with `@continuous`, a changing start date makes the scheduler skip every second run.
START_DATE = datetime(2024, 1, 1, tzinfo=UTC)
OWNER = "foldlake"

STREAM_DAG = "stream"
COMPACTION_DAG = "compaction"
REBUILD_DAG = "rebuild"
TOPIC_REBUILDS = "rebuild_topic."
ROLLBACK_DAG = "rollback"
RETIREMENT_DAG = "retirement"
QUALITY_DAG = "quality"
MAINTENANCE_DAG = "maintenance"
# Airflow's connection to Spark for the stream driver: the environment variable AIRFLOW_CONN_STREAM_SPARK defines it.
SPARK_STREAM_CONNECTION = "stream_spark"
# The same for the jobs that read and write the lake: AIRFLOW_CONN_LAKE_SPARK.
SPARK_LAKE_CONNECTION = "lake_spark"

# The first word of the note of a run whose request was refused.
REFUSED = "Refused: "

# The first word of the note of a run that ended because its rebuild was aborted.
ABORTED = "Aborted: "

# What a run of the DAG `compaction` brings up to date if its form names no table.
ALL_TABLES = "all"
# The task that brings the tables of all topics up to date.
TOPICS_TASK = "append_events"

# The alias under which a task emits an event of the lake asset that the run's form determines.
LAKE_ALIAS = "lake"

# The environment variable with the URL of the server of the status page; empty or not set: that of the settings.
STATUS_PAGE = "FOLDLAKE_STACK_STATUS_PAGE"
# The environment variable with the reading of the boot clock when the scheduler started, whose children tasks are.
SCHEDULER_STARTED = "FOLDLAKE_SCHEDULER_STARTED_S"

# Pools: name -> (slots, description). `./foldlake up` creates them.
LAKE_POOL = Slot.LAKE.value
REBUILD_POOL = Slot.REBUILD.value
QUALITY_POOL = "quality"
POOLS = {
    LAKE_POOL: (
        1,
        "Jobs that write the lake's tables: one at a time, awaited ones first",
    ),
    REBUILD_POOL: (
        2,
        "Catch-up, staging and verification of rebuilds: as many in parallel as the machine can run",
    ),
    QUALITY_POOL: (1, "Quality checks"),
}


def topic_rebuild_dag(topic: str) -> str:
    """Return the id of the DAG that rebuilds everything that folds a topic, from a new version of it."""
    return f"{TOPIC_REBUILDS}{topic}"


def is_rebuild(dag_id: str) -> bool:
    """Return whether the runs of a DAG build versions."""
    return dag_id == REBUILD_DAG or dag_id.startswith(TOPIC_REBUILDS)


def changelog_asset(model: str) -> str:
    """Return the name of the asset of a read model's changelog."""
    return f"changelog/{model}"


def lake_asset(model: str) -> str:
    """Return the name of the asset of `lake/<model>`: an event for each compaction and each promotion."""
    return f"lake/{model}"


def check_due_asset(model: str) -> str:
    """Return the name of the asset whose events start a check of a read model: after a change of its table, unless none is due."""
    return f"check-due/{model}"


def quality_asset(model: str) -> str:
    """Return the name of the asset of a read model's quality: an event for each check that passed."""
    return f"quality/{model}"


def dag_arguments(*tags: str, max_active_runs: int = 1) -> dict[str, Any]:
    """Return the arguments common to all DAGs."""
    return {
        "start_date": START_DATE,
        "catchup": False,
        "max_active_runs": max_active_runs,
        "tags": ["foldlake", *tags],
        "default_args": {"owner": OWNER, "retry_delay": timedelta(seconds=1)},
    }
