"""The slots of Airflow's pools on a machine."""

from include.airflow.names import LAKE_POOL, REBUILD_POOL
from stack.components.airflow_component import PARALLEL_REBUILD_BYTES, PARALLEL_REBUILD_CORES, pools


def test_catch_up_and_staging_run_side_by_side_only_on_a_large_machine() -> None:
    large = pools(PARALLEL_REBUILD_CORES, PARALLEL_REBUILD_BYTES)
    few_cores = pools(PARALLEL_REBUILD_CORES - 1, PARALLEL_REBUILD_BYTES)
    little_memory = pools(PARALLEL_REBUILD_CORES, PARALLEL_REBUILD_BYTES - 1)

    assert [found[REBUILD_POOL][0] for found in (large, few_cores, little_memory)] == [2, 1, 1]
    assert {found[LAKE_POOL][0] for found in (large, few_cores, little_memory)} == {1}
