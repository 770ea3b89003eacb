"""A node with all partitions of a read model answers without the other nodes, unless it cannot."""

import pytest

from include.nodes.peers import HOP_OWNER, Hop, PeerResponse, Peers
from include.settings import Placement, Settings
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import FailureReason, LocalAnswer, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.lookup.routing import attempts
from query_api.store.base import Change
from tests.unit.query_api.balance_record import balance_value
from tests.unit.query_api.lookup.node_files import KEY, NodeFiles, other_node

TARGET = "/lookup"


@pytest.fixture
def node(settings: Settings) -> NodeFiles:
    node = NodeFiles(settings)
    node.create_store(1, [Change(KEY, 3, 0, balance_value())])
    return node


@pytest.mark.parametrize("placement", Placement)
def test_only_a_partitioned_read_model_is_asked_from_the_owner(
    settings: Settings, node: NodeFiles, placement: Placement
) -> None:
    with other_node() as owner:
        node.publish(1, owner=owner.url, standby=owner.url, placement=placement)
        local = LocalLookup(settings)
        location = local.locate("balance", KEY)
        found = Lookups(local, Peers()).answer(location, TARGET, None)

    is_local = placement is not Placement.PARTITIONED
    assert isinstance(found, LocalAnswer if is_local else PeerResponse)
    assert len(owner.hops) == (0 if is_local else 1)
    here = settings.advertised_url
    itself, other = (here, None), (owner.url, HOP_OWNER)
    assert list(attempts(location)) == ([itself, other] if is_local else [other, itself])


def test_another_node_answers_while_this_one_cannot_read_its_store(
    settings: Settings, node: NodeFiles
) -> None:
    node.remove_store(1)
    with other_node() as owner:
        node.publish(1, owner=owner.url, standby=owner.url, placement=Placement.REPLICATED)
        local = LocalLookup(settings)
        found = Lookups(local, Peers()).answer(local.locate("balance", KEY), TARGET, None)

    assert isinstance(found, PeerResponse)
    assert owner.hops == [HOP_OWNER]


def test_node_that_does_not_own_a_partition_refuses_what_is_for_its_owner(
    settings: Settings, node: NodeFiles
) -> None:
    node.publish(1, is_owner=False, placement=Placement.REPLICATED)
    local = LocalLookup(settings)

    with pytest.raises(LookupFailedError) as refused:
        Lookups(local, Peers()).answer(local.locate("balance", KEY), TARGET, Hop(HOP_OWNER))

    assert refused.value.reason is FailureReason.NOT_OWNER
