"""What a query node has to know of the cluster, asked about once a second: versions, topics, group, ends of sources."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from include.errors import KafkaUnavailableError
from include.settings import Settings
from include.versions import ReadModelVersions, VersionRegistry
from query_api.membership import GROUP
from query_api.store.base import Binding

REQUEST_TIMEOUT_S = 5.0
# Between two rebalances the group has no assignment to show: the last good table stays in force.
STABLE = "STABLE"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TopicFacts:
    """A topic's incarnation and its number of partitions."""

    binding: Binding
    partitions: int


@dataclass(frozen=True)
class RoutingTable:
    """Which node owns which (topic, partition), by URL, and every member's name by URL."""

    owners: Mapping[tuple[str, int], str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterView:
    """All of it, as of one moment."""

    versions: Mapping[str, ReadModelVersions] = field(default_factory=dict)
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    routing: RoutingTable = field(default_factory=RoutingTable)
    source_ends: Mapping[tuple[str, int], int] = field(default_factory=dict)


class ClusterObserver:
    """Asks Kafka. Not for use by several threads at once."""

    def __init__(self, settings: Settings, source_topics: Mapping[str, str]) -> None:
        """Observe the read models whose names and source topics are given."""
        self._source_topics = source_topics
        self._versions = VersionRegistry(settings.bootstrap_servers, settings.replication_factor)
        self._admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers, "log_level": 3})
        self._routing = RoutingTable()

    def observe(self) -> ClusterView:
        """Return the cluster as it is now; raises KafkaUnavailableError when it does not answer."""
        versions = {name: v for name, v in self._versions.read().items() if name in self._source_topics}
        names = {v.changelog_topic for record in versions.values() for v in record.active}
        names |= set(self._source_topics.values())
        try:
            topics = self._topic_facts(sorted(names))
            return ClusterView(versions, topics, self.routing(), self._source_ends(topics))
        except (KafkaException, TimeoutError) as error:
            message = f"Kafka does not answer ({error}): is the broker up?"
            raise KafkaUnavailableError(message) from error

    def _topic_facts(self, names: list[str]) -> dict[str, TopicFacts]:
        cluster_id = self._admin.describe_cluster(request_timeout=REQUEST_TIMEOUT_S).result(REQUEST_TIMEOUT_S).cluster_id
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=REQUEST_TIMEOUT_S)
        facts = {}
        for name, future in asked.items():
            try:
                description = future.result(REQUEST_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                    raise
                continue
            facts[name] = TopicFacts(Binding(cluster_id, name, str(description.topic_id)), len(description.partitions))
        return facts

    def routing(self) -> RoutingTable:
        """Return the newest routing table that the group has shown while it was stable."""
        asked = self._admin.describe_consumer_groups([GROUP], request_timeout=REQUEST_TIMEOUT_S)
        group: Any = asked[GROUP].result(REQUEST_TIMEOUT_S)
        if group.state.name == STABLE:
            owners = {
                (p.topic, p.partition): member.client_id
                for member in group.members
                for p in member.assignment.topic_partitions
            }
            nodes = {member.client_id: member.group_instance_id or member.client_id for member in group.members}
            self._routing = RoutingTable(owners, nodes)
        return self._routing

    def _source_ends(self, topics: Mapping[str, TopicFacts]) -> dict[tuple[str, int], int]:
        wanted = {
            TopicPartition(name, partition): OffsetSpec.latest()
            for name in set(self._source_topics.values())
            if name in topics
            for partition in range(topics[name].partitions)
        }
        if not wanted:
            return {}
        asked = self._admin.list_offsets(wanted, request_timeout=REQUEST_TIMEOUT_S)
        return {(p.topic, p.partition): future.result(REQUEST_TIMEOUT_S).offset for p, future in asked.items()}
