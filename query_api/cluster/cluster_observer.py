"""Reads the cluster's metadata about once a second: versions, topics, the consumer group, the end offsets of sources and changelogs.

A promotion takes effect before the next regular reading: another thread follows the version registry's topic.
"""

import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicCollection, TopicPartition

from include.boot_clock import NEVER, Moment
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer
from include.kafka.record_ends import Partition, RecordEnds
from include.kafka.topics import VERSION_REGISTRY_TOPIC, admin_client
from include.nodes.node_url import PeerRule
from include.nodes.routing_table import RoutingTable, member_url, routing_table
from include.position import Offsets
from include.settings import KafkaConnection
from include.stream.checkpoints import query_name
from include.stream.folded_offsets import read_offsets
from include.stream.query_reports import QueryReport, newest_reports
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions
from query_api.store.base import Binding

REQUEST_TIMEOUT_S = 5.0
# A topic that was deleted and recreated is detected within this time.
TOPIC_FACTS_S = 5.0
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"
POLL_S = 0.5


@dataclass(frozen=True)
class TopicFacts:
    """A topic's id, which changes when the topic is recreated, and its number of partitions."""

    binding: Binding
    partitions: int


@dataclass(frozen=True)
class ClusterView:
    """A snapshot of the cluster.

    ends: (topic, partition) -> the end offset of each partition of the source topics and changelogs; of a source topic that has not
        changed since the observation before, where its records end.
    ends_read_at: just before the ends were requested.
    """

    versions: Mapping[str, ReadModelVersions] = field(default_factory=dict)
    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    routing: RoutingTable = field(default_factory=RoutingTable)
    ends: Mapping[Partition, int] = field(default_factory=dict)
    ends_read_at: Moment = NEVER

    def ends_of(self, topic: str) -> dict[int, int]:
        """Return the end offset of each partition of a topic."""
        return {partition: end for (name, partition), end in self.ends.items() if name == topic}


class ClusterObserver:
    """Reads a ClusterView from Kafka. Not thread-safe."""

    def __init__(
        self,
        kafka: KafkaConnection,
        replication_factor: int,
        source_topics: Mapping[str, str],
        peers: PeerRule,
    ) -> None:
        """Observe the read models whose names and source topics are given, and the nodes that `peers` accepts."""
        self._source_topics = source_topics
        self._kafka = kafka
        self._peers = peers
        self._versions = VersionRegistry(kafka, replication_factor)
        self._admin = admin_client(kafka)
        self._consumer = log_consumer(kafka)
        self._record_ends = RecordEnds(self._consumer)
        self._ends_before: Mapping[Partition, int] = {}
        self._routing = RoutingTable()
        self._facts: dict[str, TopicFacts] = {}
        self._facts_at = float("-inf")

    def observe(self) -> ClusterView:
        """Return the current view of the cluster; raises KafkaUnavailableError."""
        versions = {name: v for name, v in self._versions.read().items() if name in self._source_topics}
        names = {v.changelog_topic for record in versions.values() for v in record.active}
        names |= {v.source_topic for record in versions.values() for v in record.active if v.source_topic}
        names |= set(self._source_topics.values())
        try:
            topics = self._topics(frozenset(names))
            # None during a rebalance: the last routing table stays in use.
            self._routing = routing_table(self._admin, REQUEST_TIMEOUT_S, self._peers) or self._routing
            read_at = Moment.now()
            ends = self._ends(topics)
            sources = topics.keys() - {
                v.changelog_topic for record in versions.values() for v in record.active
            }
            ends |= self._quiet_record_ends(sources, ends)
            return ClusterView(versions, topics, self._routing, ends, read_at)
        except (KafkaException, TimeoutError) as error:
            message = f"Kafka at {self._kafka} does not answer ({error}): is the broker up?"
            raise KafkaUnavailableError(message) from error

    def url_under(self, name: str) -> str | None:
        """Return the URL of the group's member with this node name, if any; raises KafkaUnavailableError."""
        try:
            return member_url(self._admin, REQUEST_TIMEOUT_S, name)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Kafka does not describe the group of the nodes: {error}") from error

    def fold_progress(
        self, key: tuple[str, int], source_topic: str, folded: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[Offsets, QueryReport | None]:
        """Return how far a version's source has been read without a fold, and the driver's report on the version's query.

        key: the read model and the version. folded: the offset after the newest folded event of each partition. ends: the ends beyond
        them, which count as read if no record is between. Raises KafkaUnavailableError.
        """
        name = query_name(*key)
        query = next((q for q in newest_reports(self._consumer) if q.query == name), None)
        read = read_offsets(self._admin, self._consumer, source_topic, query).merge(folded)
        record_ends = self._record_ends.unread(source_topic, ends, read)
        return read.merge({p: end for p, end in ends.items() if read.of(p) >= record_ends.of(p)}), query

    def _topics(self, names: frozenset[str]) -> dict[str, TopicFacts]:
        """Return the metadata of the topics that exist; refreshed every few seconds, and on each call while one is missing."""
        now = time.monotonic()
        if now - self._facts_at >= TOPIC_FACTS_S or not names <= self._facts.keys():
            self._facts = self._describe(sorted(names))
            self._facts_at = now
        return {name: self._facts[name] for name in names & self._facts.keys()}

    def _describe(self, names: list[str]) -> dict[str, TopicFacts]:
        cluster = self._admin.describe_cluster(request_timeout=REQUEST_TIMEOUT_S).result(REQUEST_TIMEOUT_S)
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=REQUEST_TIMEOUT_S)
        facts = {}
        for name, future in asked.items():
            try:
                topic = future.result(REQUEST_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].name() != UNKNOWN_TOPIC:
                    raise
                continue
            binding = Binding(cluster.cluster_id, name, str(topic.topic_id))
            facts[name] = TopicFacts(binding, len(topic.partitions))
        return facts

    def _quiet_record_ends(
        self, topics: AbstractSet[str], ends: Mapping[Partition, int]
    ) -> Mapping[Partition, int]:
        """Return where the records end of those partitions of these topics to which nothing was appended since the last call.

        A partition is read once when it falls quiet. While events are appended, nothing is read: the next one is beyond the markers.
        """
        sources = {partition: end for partition, end in ends.items() if partition[0] in topics}
        quiet = {
            partition: end for partition, end in sources.items() if self._ends_before.get(partition) == end
        }
        self._ends_before = sources
        return {partition: found.offset for partition, found in self._record_ends.of(quiet).items()}

    def _ends(self, topics: Mapping[str, TopicFacts]) -> dict[Partition, int]:
        """Return the end offsets, with one request to each broker; omits a partition whose leader does not answer."""
        wanted = [
            # In the request, the special timestamp -1 stands for the end of the partition.
            TopicPartition(name, partition, OFFSET_END)
            for name, facts in topics.items()
            for partition in range(facts.partitions)
        ]
        if not wanted:
            return {}
        found = self._consumer.offsets_for_times(wanted, timeout=REQUEST_TIMEOUT_S)
        return {(p.topic, p.partition): p.offset for p in found if p.error is None and p.offset >= 0}


class RegistryWatch:
    """Calls `on_change` for every appended record. One thread calls `run_once` in a loop."""

    def __init__(self, kafka: KafkaConnection, on_change: Callable[[], None]) -> None:
        self._kafka = kafka
        self._on_change = on_change
        self._consumer: Consumer | None = None

    def run_once(self) -> None:
        """Wait briefly for the next record. The node's regular poll finds what is missed while Kafka is unavailable."""
        if self._consumer is None:
            self._consumer = log_consumer(self._kafka, fetch_wait_ms=int(POLL_S * 1000))
            self._consumer.assign([TopicPartition(VERSION_REGISTRY_TOPIC, 0, OFFSET_END)])
        message = self._consumer.poll(POLL_S)
        if message is None:
            return
        error = message.error()
        if error is None:
            self._on_change()
        elif error.name() != "_PARTITION_EOF":
            # The topic does not exist yet, or the broker is unavailable: librdkafka retries.
            time.sleep(POLL_S)
