"""What a table waits for is told from the tasks that occupy the pool's slot or wait for it."""

from typing import Any

import pytest

from include.airflow.client import AirflowApi, PoolTask
from include.airflow.lake_runs import NEXT_COMPACTION, waits_for

PROMOTION = PoolTask("rebuild", "run-a", "promote_lake", "scheduled")
COMPACTION = PoolTask("compaction", "scheduled__1", "compact_orders", "running")


class Pool(AirflowApi):
    """An Airflow whose pool has these tasks."""

    def __init__(self, *tasks: PoolTask) -> None:
        super().__init__("http://127.0.0.1:1")
        self._tasks = list(tasks)

    def pool_tasks(self, pool: str) -> list[PoolTask]:
        """Return the tasks."""
        assert pool == "lake"
        return self._tasks

    def run_conf(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Return the fields of the only run of a plan."""
        assert (dag_id, run_id) == ("rebuild", "run-a")
        return {"read_model": "balance"}


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ((), NEXT_COMPACTION),
        ((COMPACTION,), NEXT_COMPACTION),
        ((PROMOTION,), "the task promote_lake of the run run-a of rebuild, which is scheduled"),
        (
            (COMPACTION, PROMOTION),
            "the task promote_lake of the run run-a of rebuild, which waits for compact_orders of compaction",
        ),
        (
            (PoolTask("compaction", "manual__2", "compact_balance", "running"), PROMOTION),
            "the task compact_balance of the run manual__2 of compaction, which is running",
        ),
        (
            (PoolTask("rebuild_topic.orders", "run-b", "balance.promote_lake", "running"),),
            "the task balance.promote_lake of the run run-b of rebuild_topic.orders, which is running",
        ),
    ],
)
def test_the_queue_of_a_table(tasks: tuple[PoolTask, ...], expected: str) -> None:
    assert waits_for(Pool(*tasks), "balance") == expected


def test_the_promotion_of_another_read_model_is_not_awaited() -> None:
    assert waits_for(Pool(PROMOTION), "orders") == NEXT_COMPACTION
