"""Tasks of runs that somebody waits for start first, and of these the one that replaces the lake's table."""

from types import SimpleNamespace

import pytest

from include.airflow.run_hooks import RequestedFirst
from include.rebuild.stages.build import VERIFY
from include.rebuild.stages.promotion import PROMOTE_LAKE


def weight(run_id: str, priority: int = 1) -> int:
    return RequestedFirst().get_weight(
        SimpleNamespace(run_id=run_id, task=SimpleNamespace(priority_weight=priority))
    )


@pytest.mark.parametrize(
    "periodic", ["scheduled__2026-05-01T00:00:00+00:00", "asset_triggered__2026-05-01_a"]
)
def test_a_requested_run_comes_before_every_periodic_one(periodic: str) -> None:
    assert weight("manual__2026-05-01T00:00:00+00:00") > weight(periodic, PROMOTE_LAKE.priority)


def test_the_lake_follows_a_promotion_before_anything_else_is_appended_to_it() -> None:
    run_id = "manual__2026-05-01T00:00:00+00:00"
    assert weight(run_id, PROMOTE_LAKE.priority) > weight(run_id, VERIFY.priority)
