"""A node that loses Kafka in the middle of a stream sends what it missed once Kafka is back, each change once and in order."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.integration.live_changes.buoys import CHANGES, Buoys
from tests.integration.live_changes.event_stream import event_stream
from tests.support.faults.kafka_proxy import KafkaProxy, proxied_node
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.waiting import wait_until

OUTAGE_S = 4.0


@pytest.fixture(scope="module")
def proxied(running: tuple[NodeStack, Buoys]) -> Iterator[tuple[ExtraNode, KafkaProxy]]:
    """A third node, and the proxy through which it reaches Kafka."""
    with proxied_node(running[0].settled()) as found:
        yield found


@pytest.mark.parametrize("lose_kafka", [KafkaProxy.stop_forwarding, KafkaProxy.refuse])
def test_a_stream_goes_on_after_its_node_had_lost_kafka(
    running: tuple[NodeStack, Buoys],
    proxied: tuple[ExtraNode, KafkaProxy],
    lose_kafka: Callable[[KafkaProxy], None],
) -> None:
    nodes, buoys = running
    node, proxy = proxied
    wait_until(lambda: nodes.is_settled(node.port), "it owns a partition")
    prefix = f"outage-{lose_kafka.__name__}"
    names = [f"{prefix}-{number}" for number in range(8)]

    def put(count: int) -> None:
        for name in names:
            buoys.put(name, count, count)
        buoys.flush()

    with event_stream(node.port, f"{CHANGES}?prefix={prefix}-") as stream:
        stream.wait_until_live()
        put(1)
        stream.wait_for(lambda s: len(s.named("changed")) == len(names), "the first changes")
        lose_kafka(proxy)
        put(2)
        time.sleep(OUTAGE_S)
        assert len(stream.named("changed")) == len(names), "what it cannot read is not sent"
        assert not stream.has_ended
        proxy.forward()
        put(3)
        stream.wait_for(lambda s: len(s.named("changed")) >= 3 * len(names), "the others are sent")
        for name in names:
            assert [event.data["eventCount"] for event in stream.of_key(name)] == [1, 2, 3]
    for name in names:
        buoys.remove(name)
    buoys.flush()
