"""Reads the contents of each query node's own store: its partitions, numbers of keys and single records."""

import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode

from confluent_kafka import KafkaException

from include.errors import FoldlakeError, KafkaUnavailableError
from include.http_replies import BUSY, is_json
from include.kafka.topics import admin_client
from include.nodes.node_url import PeerRule
from include.nodes.partition_report import reports_of
from include.nodes.peers import HOP_ANY, REASON_HEADER, PeerDownError, PeerResponse, Peers
from include.nodes.record_requests import record_target, records_path
from include.nodes.routing_table import RoutingTable, routing_table
from include.settings import KafkaConnection, Placement
from include.waiting import wait_for

REQUEST_TIMEOUT_S = 10.0
RETRY_S = 0.2
OWNER, STANDBY = "owner", "standby"
RETRIED = {HTTPStatus.MISDIRECTED_REQUEST, *BUSY}
UNKNOWN_KEY = "unknown-key"


@dataclass(frozen=True)
class PartitionReplica:
    """A partition of the version on one node; `role` is owner or standby."""

    node: str
    url: str
    partition: int
    role: str

    @property
    def name(self) -> str:
        """The replica's name in reports."""
        return f"{self.node} partition {self.partition} ({self.role})"


@dataclass(frozen=True)
class Replicas:
    """The replicas that serve a version.

    ready: the partitions that are ready on a node. unowned: partitions that are not ready on their owner.
    unreachable: for each node that does not respond, a message with its URL and the error.
    """

    ready: tuple[PartitionReplica, ...]
    unowned: tuple[int, ...]
    unreachable: tuple[str, ...]

    @property
    def are_complete(self) -> bool:
        """Whether every node responds and every partition's owner is ready."""
        return bool(self.ready) and not self.unowned and not self.unreachable


class ReplicaUnavailableError(FoldlakeError):
    """No node is ready, or a node rejected a request for a partition, or did not respond within the timeout."""


class NodeClient:
    """The client of all query nodes of this Kafka, for one version of a read model. Thread-safe.

    tls: of the connections to nodes.
    """

    def __init__(
        self, kafka: KafkaConnection, peers: PeerRule, model: str, version: int, source_topic: str
    ) -> None:
        self._kafka = kafka
        self._peers = peers
        self._records = records_path(model)
        self._model = model
        self._version = version
        self._source_topic = source_topic
        self._nodes = Peers(peers.tls)
        self.tls = peers.tls

    def close(self) -> None:
        """Close the connections."""
        self._nodes.close()

    def replicas(self, wait_s: float) -> Replicas:
        """Return the replicas that serve the version.

        Waits until every node responds and every partition's owner is ready, but not longer than `wait_s`.
        Raises KafkaUnavailableError.
        """
        found = Replicas((), (), ())

        def look() -> bool:
            nonlocal found
            found = self._find_replicas()
            return found.are_complete

        wait_for(look, timeout_s=wait_s, poll_s=RETRY_S)
        return found

    def ready_replicas(self, wait_s: float) -> Replicas:
        """Return the replicas as `replicas` does; raises ReplicaUnavailableError if none is ready."""
        found = self.replicas(wait_s)
        if not found.ready:
            reason = "; ".join(found.unreachable) or "run `./foldlake status` to see whether the nodes run"
            raise ReplicaUnavailableError(
                f"No query node is ready to serve {self._model} v{self._version}: {reason}."
            )
        return found

    def key_count(self, replica: PartitionReplica, deadline_s: float) -> int:
        """Return the number of keys of a partition on this node; raises ReplicaUnavailableError.

        deadline_s: when to give up, on the clock of time.monotonic().
        """
        query = {"partition": replica.partition, "version": self._version, "limit": 1}
        response = self._get(replica, f"{self._records}?{urlencode(query)}", deadline_s)
        return int(json.loads(response.body)["total"])

    def record(self, replica: PartitionReplica, key: str, deadline_s: float) -> str | None:
        """Return a key's record on this node as JSON text, or None if it has none; raises ReplicaUnavailableError.

        deadline_s: when to give up, on the clock of time.monotonic().
        """
        target = record_target(self._model, key, {"version": self._version})
        response = self._get(replica, target, deadline_s)
        return None if response.status == HTTPStatus.NOT_FOUND else response.body.decode()

    def _find_replicas(self) -> Replicas:
        routing = self._routing()
        ready: list[PartitionReplica] = []
        unreachable = []
        for url, name in sorted(routing.nodes.items()):
            try:
                ready += self._replicas_on(url, name, routing)
            except PeerDownError as error:
                unreachable.append(f"{name} at {url} does not respond: {error}")
        partitions = {partition for topic, partition in routing.owners if topic == self._source_topic}
        owned = {replica.partition for replica in ready if replica.role == OWNER}
        return Replicas(tuple(ready), tuple(sorted(partitions - owned)), tuple(unreachable))

    def _replicas_on(self, url: str, name: str, routing: RoutingTable) -> list[PartitionReplica]:
        return [
            PartitionReplica(name, url, report.partition, self._role(url, report.partition, routing))
            for report in reports_of(self._nodes.at(url), REQUEST_TIMEOUT_S)
            if report.read_model == self._model
            and report.version == self._version
            and report.is_held
            and report.is_ready
            # All nodes read the same records in Redis: those are read once.
            and (
                report.placement is not Placement.REDIS
                or routing.owners.get((self._source_topic, report.partition)) == url
            )
        ]

    def _role(self, url: str, partition: int, routing: RoutingTable) -> str:
        return OWNER if routing.owners.get((self._source_topic, partition)) == url else STANDBY

    def _get(self, replica: PartitionReplica, target: str, deadline_s: float) -> PeerResponse:
        """Return the node's response with a record or page, or with the reason that the key is unknown."""
        what, path = f"{replica.name} at {replica.url}", target.partition("?")[0]
        reason = ""

        def request() -> PeerResponse | None:
            nonlocal reason
            try:
                response = self._nodes.at(replica.url).get(target, HOP_ANY, REQUEST_TIMEOUT_S)
            except PeerDownError as error:
                reason = str(error)
                return None
            is_record = response.status == HTTPStatus.OK and is_json(response.headers.get("content-type"))
            if is_record or response.headers.get(REASON_HEADER.lower()) == UNKNOWN_KEY:
                return response
            reason = f"{response.status} {response.body[:200].decode(errors='replace')}"
            if response.status not in RETRIED:
                raise ReplicaUnavailableError(f"{what} rejected {path}: {reason}")
            return None

        response = wait_for(request, timeout_s=deadline_s - time.monotonic(), poll_s=RETRY_S)
        if response is None:
            raise ReplicaUnavailableError(f"{what} does not respond to {path}: {reason}")
        return response

    def _routing(self) -> RoutingTable:
        admin = admin_client(self._kafka)
        try:
            return routing_table(admin, REQUEST_TIMEOUT_S, self._peers) or RoutingTable()
        except KafkaException as error:
            message = f"Cannot read the query nodes' consumer group from Kafka at {self._kafka} ({error}): is the broker up?"
            raise KafkaUnavailableError(message) from error
