"""A node that has not confirmed its partition's end recently asks another node first, and answers itself if that has not either."""

from http import HTTPStatus

import pytest

from include.nodes.peers import HOP_ANY, HOP_CURRENT, REASON_HEADER, Hop, PeerResponse, Peers
from include.settings import Settings
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import FailureReason, LocalAnswer, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.lookup.routing import partition_of
from query_api.store.base import Change
from tests.unit.query_api.balance_record import balance_value
from tests.unit.query_api.lookup.node_files import KEY, NodeFiles, other_node

OUTDATED_S, RECENT_S = 7.0, 5.0
TARGET = "/lookup"


@pytest.fixture
def node(settings: Settings) -> NodeFiles:
    node = NodeFiles(settings)
    node.create_store(1, [Change(KEY, 3, 0, balance_value())])
    return node


def answer(settings: Settings, rule: str | None = None) -> LocalAnswer | PeerResponse:
    """Look up the key."""
    local = LocalLookup(settings)
    return Lookups(local, Peers()).answer(
        local.locate("balance", KEY), TARGET, None if rule is None else Hop(rule)
    )


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("is_owner", [True, False])
def test_current_answer_of_another_node_is_preferred_to_an_outdated_one(
    settings: Settings, node: NodeFiles, status: int, *, is_owner: bool
) -> None:
    with other_node(status) as other:
        node.publish(1, confirmed_s_ago=OUTDATED_S, standby=other.url, is_owner=is_owner)

        found = answer(settings)

    assert isinstance(found, PeerResponse)
    assert (found.status, other.hops) == (status, [HOP_CURRENT])


def test_recently_confirmed_owner_asks_no_other_node(settings: Settings, node: NodeFiles) -> None:
    with other_node() as other:
        node.publish(1, confirmed_s_ago=RECENT_S, standby=other.url)

        assert isinstance(answer(settings), LocalAnswer)

    assert other.hops == []


def test_request_from_another_node_is_answered_locally(settings: Settings, node: NodeFiles) -> None:
    with other_node() as other:
        node.publish(1, confirmed_s_ago=OUTDATED_S, standby=other.url)

        assert isinstance(answer(settings, HOP_ANY), LocalAnswer)

    assert other.hops == [], "a request is proxied once"


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (503, {REASON_HEADER: FailureReason.NOT_READY.slug}),
        *((status, {}) for status in (401, 403, 408, 429, 500, 502)),
        *((status, {"Content-Type": "text/html"}) for status in (200, 302, 404)),
    ],
)
def test_outdated_owner_answers_when_no_other_node_is_current(
    settings: Settings, node: NodeFiles, status: int, headers: dict[str, str]
) -> None:
    with other_node(status, headers) as other:
        node.publish(1, confirmed_s_ago=OUTDATED_S, standby=other.url)

        found = answer(settings)

    assert isinstance(found, LocalAnswer)
    assert found.partition.lag_ms() >= OUTDATED_S * 1000
    assert other.hops == [HOP_CURRENT]


def test_request_for_a_current_answer_is_refused_by_a_node_that_is_not_current(
    settings: Settings, node: NodeFiles
) -> None:
    node.publish(1, confirmed_s_ago=RECENT_S)
    assert isinstance(answer(settings, HOP_CURRENT), LocalAnswer)

    node.publish(1, confirmed_s_ago=OUTDATED_S)
    with pytest.raises(LookupFailedError) as refused:
        answer(settings, HOP_CURRENT)
    assert refused.value.reason is FailureReason.NOT_READY


def test_outdated_owner_answers_when_no_other_node_does(settings: Settings, node: NodeFiles) -> None:
    with other_node() as stopped:
        pass
    node.publish(1, confirmed_s_ago=OUTDATED_S, standby=stopped.url)

    assert isinstance(answer(settings), LocalAnswer)


def test_node_that_is_outdated_too_is_not_asked_for_each_lookup(settings: Settings, node: NodeFiles) -> None:
    with other_node(503, {REASON_HEADER: FailureReason.NOT_READY.slug}) as other:
        node.publish(1, confirmed_s_ago=OUTDATED_S, standby=other.url)
        local = LocalLookup(settings)
        lookups = Lookups(local, Peers())

        for _ in range(10):
            assert isinstance(lookups.answer(local.locate("balance", KEY), TARGET, None), LocalAnswer)

    assert len(other.hops) < 10


def test_node_without_one_partition_is_asked_for_another(settings: Settings, node: NodeFiles) -> None:
    first, second = (next(k for k in map(str, range(99)) if partition_of(k.encode(), 2) == p) for p in (0, 1))
    node.create_store(2, [], partitions=2)
    with other_node(HTTPStatus.MISDIRECTED_REQUEST, {REASON_HEADER: FailureReason.NOT_OWNER.slug}) as other:
        node.publish(2, confirmed_s_ago=OUTDATED_S, standby=other.url, partitions=2)
        local = LocalLookup(settings)
        lookups = Lookups(local, Peers())
        with pytest.raises(LookupFailedError, match="no record"):
            lookups.answer(local.locate("balance", first.encode()), TARGET, None)

        other.status, other.headers = HTTPStatus.OK, {}
        found = lookups.answer(local.locate("balance", second.encode()), TARGET, None)

    assert isinstance(found, PeerResponse)
