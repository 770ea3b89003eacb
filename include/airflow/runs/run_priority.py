"""Which of the tasks that wait for a slot of a pool starts next: those of runs that somebody waits for come first."""

from typing import Any

from airflow.task.priority_strategy import PriorityWeightStrategy

# How Airflow names the runs that a schedule or an asset has started.
AUTOMATIC_RUNS = ("scheduled__", "asset_triggered__")
REQUESTED = 1_000


class RequestedFirst(PriorityWeightStrategy):
    """Tasks of runs that were started by hand, from the command line or over REST start before those of periodic runs."""

    def get_weight(self, ti: Any) -> int:  # noqa: ANN401 - Airflow's task instance
        """Return the weight: the waiting task with the largest one starts first."""
        weight = int(ti.task.priority_weight)
        return weight if str(ti.run_id).startswith(AUTOMATIC_RUNS) else max(weight, 1) * REQUESTED
