"""The node's membership in the consumer group that assigns partitions to owners.

The group subscribes to the read models' source topics, which have as many partitions as their changelogs, so ownership does
not change when another version is promoted. The member fetches no records.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from include.nodes.routing_table import GROUP
from include.settings import KafkaConnection, NodeSettings
from query_api.errors import FencedError

# Three heartbeats fit into the shortest session timeout that a broker allows by default (6 s).
HEARTBEAT_INTERVAL_MS = 1500
METADATA_REFRESH_MS = 5000
POLL_S = 0.2
# A join takes a second; longer while another member is away.
JOIN_TIMEOUT_S = 15.0

log = logging.getLogger(__name__)


class Membership:
    """Joins the group and keeps `assigned` up to date. One thread calls `run_once` in a loop."""

    def __init__(
        self, kafka: KafkaConnection, node: NodeSettings, url: str, on_change: Callable[[], None]
    ) -> None:
        """Get ready to join. url: at which other nodes reach this one. on_change: called after each change of `assigned`."""
        self._on_change = on_change
        self._topics: frozenset[str] = frozenset()
        self.assigned: frozenset[tuple[str, int]] = frozenset()
        self.has_joined = False
        self._change_at_s = 0.0
        self._consumer = Consumer(
            {
                **kafka.client_settings,
                "group.id": GROUP,
                # A restart within the session timeout gets its partitions back without a rebalance.
                "group.instance.id": node.name,
                # The routing table is built from the group's description, which contains each member's client id.
                "client.id": url,
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": node.session_timeout_s * 1000,
                "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
                "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "log_level": 3,
            }
        )

    @property
    def is_joining(self) -> bool:
        """Whether the node has asked to join the group."""
        return bool(self._topics)

    def subscribe(self, topics: Iterable[str], before: Collection[str] = ()) -> None:
        """Join the group for these topics; does nothing if they have not changed.

        before: those of the previous process of this node. Kafka does not rebalance when a static member joins again, even for other topics:
        it first joins for those that it had, and the others are a change of its subscription.
        """
        wanted = frozenset(topics)
        if not wanted or wanted == self._topics:
            return
        if not self._topics:
            wanted = wanted.intersection(before) or wanted
            self._change_at_s = time.monotonic() + JOIN_TIMEOUT_S
        elif not self.has_joined and time.monotonic() < self._change_at_s:
            return
        self._consumer.subscribe(
            sorted(wanted), on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
        )
        self._topics = wanted

    def run_once(self) -> None:
        """Serve the membership for a moment; raises FencedError when another process uses this node's name."""
        message = self._consumer.poll(POLL_S)
        error = None if message is None else message.error()
        if error is None:
            return
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - it has no public name
            raise FencedError(
                f"Kafka has removed this node from the group ({error}): check that no other node uses its name."
            )
        log.warning("membership: %s", error)

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        self.assigned |= {(p.topic, p.partition) for p in partitions}
        self.has_joined = True
        log.info("owns %s", sorted(self.assigned))
        self._on_change()

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {(p.topic, p.partition) for p in partitions}
        try:
            consumer.incremental_unassign(partitions)
        except KafkaException as error:
            # The whole assignment was lost: there is nothing left to unassign.
            log.info("unassign: %s", error)
        log.info("owns %s", sorted(self.assigned))
        self._on_change()

    def _lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Handle an expired session, as after a broker outage: until the next join, the routing table decides."""
        self.has_joined = False
        self._revoke(consumer, partitions)

    def close(self) -> None:
        """Close the consumer. A static member stays in the group until its session expires or it rejoins."""
        self._consumer.close()
