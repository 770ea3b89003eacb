"""A node is ready, degraded or not ready, with the reasons."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from include.settings import NodeSettings, Placement
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.status.node_view import Readiness, readiness

NODE = NodeSettings(max_age_s=60.0)


def state(
    confirmed_s_ago: float = 0.5,
    *,
    is_ready: bool = True,
    waiting_for: str = "",
    still_since: float | None = None,
    write_error: str = "",
    opening: str = "",
) -> NodeState:
    """Return the state of a node with one partition of one version."""
    partition = PartitionState(is_ready=is_ready, confirmed_at=time.time() - confirmed_s_ago)
    live = VersionState(
        1,
        "live",
        "t",
        {0: partition},
        still_since=still_since,
        write_error=write_error,
        opening=opening,
    )
    model = ModelState("m", "source", 1, 1, 1, {1: live}, frozenset({0}), owners={0: "http://a"})
    return NodeState("a", "http://a", written_at=time.time(), waiting_for=waiting_for, models={"m": model})


def test_current_node_is_ready() -> None:
    assert readiness(state(), NODE) == Readiness()


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (lambda: None, "has not started"),
        (lambda: replace(state(), written_at=time.time() - 100), "has not updated its state for 100 s"),
        (lambda: replace(state(), models={}), "has no read model yet"),
        (lambda: state(is_ready=False), "still being read"),
        (lambda: replace(state(), keys_missing="The API keys have not been read yet."), "API keys"),
        (lambda: state(is_ready=False, opening="its store is checked"), "m v1: its store is checked."),
        (
            lambda: state(confirmed_s_ago=61),
            "last confirmed 61 s ago; the limit is 60 s (FOLDLAKE_NODE_MAX_AGE_S).",
        ),
        (lambda: state(confirmed_s_ago=61, waiting_for="Kafka is gone."), "Kafka is gone."),
    ],
)
def test_node_is_not_ready(found: Callable[[], NodeState | None], reason: str) -> None:
    assert reason in " ".join(readiness(found(), NODE).not_ready)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (lambda: state(confirmed_s_ago=7), "last confirmed 7 s ago"),
        (lambda: state(still_since=time.time() - 30), "none was folded for 30 s"),
        (lambda: state(write_error="The disk is full."), "The disk is full."),
    ],
)
def test_node_is_degraded_and_ready(found: Callable[[], NodeState], reason: str) -> None:
    verdict = readiness(found(), NODE)

    assert verdict.not_ready == ()
    assert reason in " ".join(verdict.degraded)


def test_node_without_the_redis_of_a_read_model_is_not_ready() -> None:
    found = state(write_error="Redis at cache.example:6379 does not answer")
    assert readiness(found, NODE).not_ready == ()

    in_redis = replace(found, models={"m": replace(found.models["m"], placement=Placement.REDIS)})

    assert readiness(in_redis, NODE).not_ready == ("Redis at cache.example:6379 does not answer",)
