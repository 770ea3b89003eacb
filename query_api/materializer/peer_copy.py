"""Fills the empty store of a version with a peer's records, partition by partition, each as one stream.

The changelog is then read from the position that the peer had reached before it sent the first record: what a later record contains of
events after it is applied again, which changes nothing.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from include.boot_clock import Moment
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client
from include.kafka.wire_format import HEADER_BYTES, split
from include.nodes.node_url import PeerRule
from include.nodes.partition_report import PartitionReport, reports_of
from include.nodes.peer_tls import client_tls
from include.nodes.peers import PeerDownError, Peers
from include.nodes.record_client import PartitionReplica, ReplicaUnavailableError
from include.nodes.record_requests import NO_SAMPLING
from include.nodes.routing_table import RoutingTable, routing_table
from include.settings import Settings
from include.waiting import wait_for
from query_api.errors import FollowingStoppedError, StoreFullError
from query_api.store.base import Binding, Change, ChangelogPosition, StoreWriter

if TYPE_CHECKING:
    import pyarrow as pa

ENDS_TIMEOUT_S = 5.0
# A node that joins the group makes it rebalance, which takes some seconds.
ROUTING_TIMEOUT_S, RETRY_S = 5.0, 0.2
# A peer that sends nothing for so long (up to 10 s if it is connected) is given up: the changelog has all records, too.
STREAM_WAIT_S = 5.0
# Fewer records of a changelog are read in a few seconds, also by a node that finds no peer.
MIN_RECORDS = 100_000

log = logging.getLogger(__name__)


class UnknownSchemaError(FoldlakeError):
    """The registry does not have the schema of a peer's record."""


# After these, the changelog is read.
UNAVAILABLE = (
    ReplicaUnavailableError,
    RegistryUnavailableError,
    UnknownSchemaError,
    # The changelog is read until the disk is full, too, and on from there once it has space.
    StoreFullError,
    # Of records that are not framed, or a stream that is not Arrow's.
    ValueError,
)


class PeerCopy:
    """Copies partitions of a version from nodes that are ready. records: the number of records that it has received."""

    def __init__(
        self,
        settings: Settings,
        consumer: Consumer,
        version: tuple[str, int, Binding],
        is_stopped: Callable[[], bool],
        reports: Callable[[], Iterable[PartitionReport]] | None = None,
    ) -> None:
        """Copy nothing yet.

        consumer: of the changelog. version: name of the read model, number, changelog. is_stopped: queried after each batch.
        reports: returns the reports of the peers; by default requests them.
        """
        self._model, self._version, self._binding = version
        self._topic = self._binding.topic
        self.records = 0
        self._registry = SchemaRegistry(settings.registry.connection)
        self._consumer, self._is_stopped = consumer, is_stopped
        self._tls = client_tls(settings)
        self._reports = reports or (lambda: _peer_reports(settings, is_stopped))

    def fill(self, store: StoreWriter, partitions: AbstractSet[int]) -> None:
        """Copy as many of these partitions as a peer has, each as a whole, into a store that has none.

        The store gets all positions at the end, in one commit: one without positions has nothing, or what an interrupted copy has left.
        Raises FollowingStoppedError.
        """
        if self._changelog_records(partitions) < MIN_RECORDS:
            return
        began = Moment.now()
        positions: dict[int, ChangelogPosition] = {}
        failed = set()  # of these, no further partition is requested: each would take as long to fail
        for report in [report for report in self._reports() if self._is_usable(report)]:
            partition = report.partition
            if partition not in partitions - positions.keys() or report.reported_by in failed:
                continue
            if self._copy(store, report):
                positions[partition] = ChangelogPosition.at(report.position or 0, began, report.folded)
            else:
                failed.add(report.reported_by)
        store.commit({}, positions, {})

    def _changelog_records(self, partitions: AbstractSet[int]) -> int:
        """Return at most how many records the changelog has of these partitions; 0 if that is unknown."""
        try:
            bounds = [
                self._consumer.get_watermark_offsets(TopicPartition(self._topic, p), ENDS_TIMEOUT_S)
                for p in partitions
            ]
        except KafkaException:
            return 0
        return sum(end - begin for begin, end in filter(None, bounds))

    def _schemas_of(self, batch: "pa.RecordBatch") -> Mapping[int, str]:
        """Return the schemas of the records in a batch, by id; raises UnknownSchemaError."""
        found = {}
        for start in {value[:HEADER_BYTES] for value in batch.column("value").to_pylist()}:
            schema_id, _ = split(start)
            schema = self._registry.usable_schema(schema_id)
            if schema is None:
                raise UnknownSchemaError(f"The registry does not have the schema {schema_id}.")
            found[schema_id] = schema.text
        return found

    def _is_usable(self, report: PartitionReport) -> bool:
        """Whether a peer is ready for a partition of the version, and follows the same topic: one may have been created anew."""
        reported = report.read_model, report.version, report.changelog_topic, report.changelog_id
        own = self._model, self._version, self._topic, self._binding.topic_id
        return reported == own and report.is_held and report.is_ready and bool(report.position)

    def _copy(self, store: StoreWriter, report: PartitionReport) -> bool:
        """Copy a partition's records; return whether the store has all of them. If not, it has none."""
        # It takes time and memory.
        from include.nodes.record_stream import stream_records  # noqa: PLC0415

        replica = PartitionReplica(report.reported_by, report.reported_by, report.partition, "peer")
        where, began_s, records = f"{self._topic}/{report.partition}", time.monotonic(), 0
        try:
            for batch in stream_records(
                replica, self._model, self._version, NO_SAMPLING, STREAM_WAIT_S, self._tls
            ):
                if self._is_stopped():
                    raise FollowingStoppedError(f"Following {self._topic} was stopped.")
                store.commit({report.partition: changes_of(batch)}, {}, self._schemas_of(batch))
                records += len(batch)
                self.records += len(batch)
        except UNAVAILABLE as error:
            log.warning("copying %s from %s failed: %s", where, report.reported_by, error)
            store.forget(report.partition)
            return False
        log.info(
            "%s: copied %d records from %s in %.1f s; reading on from offset %d",
            where,
            records,
            report.reported_by,
            time.monotonic() - began_s,
            report.position,
        )
        return True


def changes_of(batch: "pa.RecordBatch") -> list[Change]:
    """Return the records of a batch as changes of the changelog."""
    keys, values, event_counts, offsets = (column.to_pylist() for column in batch.columns)
    return [
        Change(key.encode(), event_count, offset, value)
        for key, event_count, offset, value in zip(keys, event_counts, offsets, values, strict=True)
    ]


def _peer_reports(settings: Settings, is_stopped: Callable[[], bool]) -> Iterable[PartitionReport]:
    """Yield the reports of all other nodes; of one that does not respond, none."""
    try:
        admin, rule = admin_client(settings.kafka_connection), PeerRule.of_node(settings)
        routing = wait_for(
            lambda: RoutingTable() if is_stopped() else routing_table(admin, ROUTING_TIMEOUT_S, rule),
            timeout_s=ROUTING_TIMEOUT_S,
            poll_s=RETRY_S,
        )
    except (KafkaException, KafkaUnavailableError) as error:
        log.info("no peer is known: %s", error)
        return
    peers = Peers(rule.tls)
    try:
        for url in sorted(routing.nodes if routing else ()):
            if url == rule.own_url:
                continue
            try:
                yield from reports_of(peers.at(url))
            except PeerDownError as error:
                log.info("no records are copied from %s: %s", url, error)
    finally:
        peers.close()
