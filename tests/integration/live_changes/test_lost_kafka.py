"""A node that loses Kafka in the middle of a stream sends what it missed once Kafka is back, each change once and in order."""

import time
from collections.abc import Callable

import pytest

from tests.integration.live_changes.buoys import CHANGES, Buoys
from tests.integration.live_changes.event_stream import event_stream
from tests.support.faults.kafka_proxy import KafkaProxy, kafka_proxy
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.repetition import repeated
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

OUTAGE_S = 4.0


@pytest.mark.parametrize("lose_kafka", [KafkaProxy.stop_forwarding, KafkaProxy.refuse])
def test_a_stream_goes_on_after_its_node_had_lost_kafka(
    nodes: NodeStack, buoys: Buoys, lose_kafka: Callable[[KafkaProxy], None]
) -> None:
    assert nodes.servers is not None
    port, proxy_port = free_ports(2)
    names = [f"outage-{port}-{number}" for number in range(8)]

    def put(count: int) -> None:
        for name in names:
            buoys.put(name, count, count)
        buoys.flush()

    with kafka_proxy(nodes.servers.kafka.port, proxy_port) as proxy:
        node = ExtraNode(nodes.settings, f"lonely-{port}", port, kafka_bootstrap=proxy.bootstrap_servers)
        try:
            with repeated(node.revive, pause_s=1.0):
                wait_until(lambda: nodes.is_settled(port), "it owns a partition")
            with event_stream(port, f"{CHANGES}?prefix=outage-{port}-") as stream:
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
                    assert [event.data["event_count"] for event in stream.of_key(name)] == [1, 2, 3]
        finally:
            node.kill()
    wait_until(nodes.is_settled, "its partitions are owned by others")
    for name in names:
        buoys.remove(name)
    buoys.flush()
