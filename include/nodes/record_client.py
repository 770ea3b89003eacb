"""Reads the contents of each query node's own store: its partitions, its records page by page, single records."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from urllib.parse import urlsplit

import httpx
from confluent_kafka import KafkaException

from include.errors import FoldlakeError, KafkaUnavailableError
from include.http_replies import BUSY, is_json
from include.kafka.topics import admin_client
from include.nodes.key_sample import KeySample
from include.nodes.node_url import PeerRule
from include.nodes.partition_report import PARTITIONS_PATH, PartitionReport
from include.nodes.peers import HOP_ANY, HOP_HEADER, REASON_HEADER
from include.nodes.record_target import record_target, records_path
from include.nodes.routing_table import RoutingTable, routing_table
from include.settings import Placement
from include.waiting import wait_for

# 500 small records are 70 kB and occupy a node's worker for about 15 ms, which hardly delays a lookup.
PAGE_RECORDS = 500
REQUEST_TIMEOUT_S = 10.0
RETRY_S = 0.2
OWNER, STANDBY = "owner", "standby"
RETRIED = {HTTPStatus.MISDIRECTED_REQUEST, *BUSY}
UNKNOWN_KEY = "unknown-key"


@dataclass(frozen=True)
class Answer:
    """A node's answer: HTTP status, headers and text."""

    status: int
    headers: HTTPMessage
    text: str


class ConnectionPool:
    """A connection to each node for each thread, for many short requests: a full HTTP client takes several times the processor time.

    Thread-safe.
    """

    def __init__(self, headers: Mapping[str, str], timeout_s: float) -> None:
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._of_thread = threading.local()
        self._all: list[HTTPConnection] = []

    def get(self, base_url: str, target: str) -> Answer | None:
        """Return the answer to a GET request; None if there is none: the next request opens a new connection."""
        connection = self._connection(base_url)
        try:
            connection.request("GET", target, headers=self._headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        except (OSError, HTTPException, UnicodeDecodeError):
            connection.close()
            return None

    def close(self) -> None:
        """Close all connections."""
        for connection in self._all:
            connection.close()

    def _connection(self, base_url: str) -> HTTPConnection:
        own: dict[str, HTTPConnection] = self._of_thread.__dict__.setdefault("connections", {})
        if base_url not in own:
            parts = urlsplit(base_url)
            kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
            own[base_url] = kind(parts.netloc, timeout=self._timeout_s)
            self._all.append(own[base_url])
        return own[base_url]


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
    """A node rejected a request for a partition, or did not respond within the timeout."""


class NodeClient:
    """The client of all query nodes of this Kafka, for one version of a read model. Thread-safe."""

    def __init__(
        self, bootstrap_servers: str, peers: PeerRule, model: str, version: int, source_topic: str
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._peers = peers
        self._records = records_path(model)
        self._model = model
        self._version = version
        self._source_topic = source_topic
        # `trust_env=False`: the user's proxy cannot reach nodes on this machine.
        self._http = httpx.Client(
            timeout=REQUEST_TIMEOUT_S, trust_env=False, headers={HOP_HEADER: HOP_ANY}, follow_redirects=True
        )

        # For lookups, of which there can be thousands.
        self._kept = ConnectionPool({HOP_HEADER: HOP_ANY}, REQUEST_TIMEOUT_S)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        self._kept.close()

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

    def pages(self, replica: PartitionReplica, sample: KeySample, wait_s: float) -> Iterator[str]:
        """Yield each page of a partition as JSON text.

        Raises ReplicaUnavailableError when the node does not return a page within `wait_s`: the time applies to
        each page, because the number of pages depends on the partition.
        """
        after: str | None = ""
        while after is not None:
            parameters: dict[str, str | int] = {
                "partition": replica.partition,
                "version": self._version,
                "limit": PAGE_RECORDS,
                "after": after,
            }
            if sample.parameter is not None:
                parameters["sample"] = sample.parameter
            response = self._get(replica, self._records, parameters, time.monotonic() + wait_s)
            yield response.text
            after = response.json()["next"]

    def key_count(self, replica: PartitionReplica, deadline_s: float) -> int:
        """Return the number of keys of a partition on this node; raises ReplicaUnavailableError.

        deadline_s: when to give up, on the clock of time.monotonic().
        """
        parameters = {"partition": replica.partition, "version": self._version, "limit": 1}
        return int(self._get(replica, self._records, parameters, deadline_s).json()["total"])

    def record(self, replica: PartitionReplica, key: str, deadline_s: float) -> str | None:
        """Return a key's record on this node as JSON text, or None if it has none; raises ReplicaUnavailableError.

        deadline_s: when to give up, on the clock of time.monotonic().
        """
        target = record_target(self._model, key, {"version": self._version})
        answer = self._kept.get(replica.url, target)
        if answer is not None and answer.status == HTTPStatus.OK and is_json(answer.headers["Content-Type"]):
            return answer.text
        if answer is not None and answer.headers.get(REASON_HEADER) == UNKNOWN_KEY:
            return None
        response = self._get(replica, target, None, deadline_s)
        return None if response.status_code == HTTPStatus.NOT_FOUND else response.text

    def _find_replicas(self) -> Replicas:
        routing = self._routing()
        ready: list[PartitionReplica] = []
        unreachable = []
        for url, name in sorted(routing.nodes.items()):
            try:
                ready += self._replicas_on(url, name, routing)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, KeyError) as error:
                unreachable.append(f"{name} at {url} does not respond: {_reason(error)}")
        partitions = {partition for topic, partition in routing.owners if topic == self._source_topic}
        owned = {replica.partition for replica in ready if replica.role == OWNER}
        return Replicas(tuple(ready), tuple(sorted(partitions - owned)), tuple(unreachable))

    def _replicas_on(self, url: str, name: str, routing: RoutingTable) -> list[PartitionReplica]:
        response = self._http.get(url + PARTITIONS_PATH)
        response.raise_for_status()
        reports = [PartitionReport.from_json(fields) for fields in response.json()]
        return [
            PartitionReplica(name, url, report.partition, self._role(url, report.partition, routing))
            for report in reports
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

    def _get(
        self,
        replica: PartitionReplica,
        path: str,
        parameters: Mapping[str, str | int] | None,
        deadline_s: float,
    ) -> httpx.Response:
        what = f"{replica.name} at {replica.url}"
        reason = ""

        def request() -> httpx.Response | None:
            nonlocal reason
            try:
                response = self._http.get(replica.url + path, params=parameters)
            except httpx.HTTPError as error:
                reason = type(error).__name__
                return None
            if response.headers.get(REASON_HEADER) == UNKNOWN_KEY or (
                response.is_success and is_json(response.headers.get("Content-Type"))
            ):
                return response
            reason = f"{response.status_code} {response.text[:200]}"
            if response.status_code not in RETRIED:
                raise ReplicaUnavailableError(f"{what} rejected {path}: {reason}")
            return None

        response = wait_for(request, timeout_s=deadline_s - time.monotonic(), poll_s=RETRY_S)
        if response is None:
            raise ReplicaUnavailableError(f"{what} does not respond to {path}: {reason}")
        return response

    def _routing(self) -> RoutingTable:
        admin = admin_client(self._bootstrap_servers)
        try:
            return routing_table(admin, REQUEST_TIMEOUT_S, self._peers) or RoutingTable()
        except KafkaException as error:
            message = f"Cannot read the query nodes' consumer group from Kafka at {self._bootstrap_servers} ({error}): is the broker up?"
            raise KafkaUnavailableError(message) from error


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return str(error.response.status_code)
    return type(error).__name__
