"""The slots of Airflow's pools on a machine."""

from include.airflow.names import LAKE_POOL, REBUILD_POOL
from stack.components.airflow_component import PARALLEL_REBUILD_BYTES, pools


def test_a_rebuild_folds_twice_at_once_only_where_memory_allows() -> None:
    large, small = pools(PARALLEL_REBUILD_BYTES), pools(PARALLEL_REBUILD_BYTES - 1)

    assert (large[REBUILD_POOL][0], small[REBUILD_POOL][0]) == (2, 1)
    assert large[LAKE_POOL] == small[LAKE_POOL] == (1, large[LAKE_POOL][1])
