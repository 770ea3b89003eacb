"""Asking query nodes for what they themselves hold: which partitions, their records page by page, single records."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import requests
from confluent_kafka import KafkaException

from include.errors import KafkaUnavailableError
from include.kafka.topics import admin_client
from include.nodes.peers import HOP_HEADER
from include.nodes.routing_table import RoutingTable, routing_table
from include.quality.check import QualityError
from include.settings import Settings
from query_api.cluster.membership import GROUP
from query_api.lookup.lookups import HOP_ANY
from spark_jobs.quality.stores.base import Sample

# 500 small records are 70 kB and keep a node's worker for some 15 ms: a lookup beside it hardly waits.
PAGE_RECORDS = 500
REQUEST_TIMEOUT_S = 10.0
RETRY_S = 0.2
OWNER, STANDBY = "owner", "standby"
TRY_AGAIN = {HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE}


@dataclass(frozen=True)
class HeldPartition:
    """A partition of the version on one node; `role` is owner or standby."""

    node: str
    url: str
    partition: int
    role: str

    @property
    def place(self) -> str:
        """Its name as a place."""
        return f"{self.node} partition {self.partition} ({self.role})"


class NotHeldError(QualityError):
    """A node does not answer for a partition, and did not within the time allowed."""


class NodeClient:
    """The nodes of this Kafka's consumer group. Safe for use by several threads."""

    def __init__(self, settings: Settings, model: str, version: int, source_topic: str) -> None:
        self._settings = settings
        self._records = f"/api/read-models/{quote(model, safe='')}/records"
        self._model = model
        self._version = version
        self._source_topic = source_topic
        self._session = requests.Session()
        # A proxy of the user's would be asked for an address of this machine.
        self._session.trust_env = False

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def held(self, deadline_s: float) -> tuple[list[HeldPartition], list[int], list[str]]:
        """Return the partitions that nodes hold ready, those without an owner that does, and nodes that do not answer.

        Waits until every partition's owner is ready, or `deadline_s` (monotonic) has passed. Raises KafkaUnavailableError.
        """
        while True:
            routing = self._routing()
            found, silent = [], []
            for url, name in sorted(routing.nodes.items()):
                try:
                    found += self._held_by(url, name, routing)
                except (requests.RequestException, ValueError, KeyError) as error:
                    silent.append(f"{name} at {url} does not answer: {type(error).__name__}")
            wanted = {partition for topic, partition in routing.owners if topic == self._source_topic}
            unowned = sorted(wanted - {held.partition for held in found if held.role == OWNER})
            if (found and not unowned and not silent) or time.monotonic() > deadline_s:
                return found, unowned, silent
            time.sleep(RETRY_S)

    def pages(self, held: HeldPartition, sample: Sample, wait_s: float) -> Iterator[str]:
        """Yield each page of a partition as JSON text.

        Raises NotHeldError when the node does not answer for one of them within `wait_s`: that is for each page, for how
        many there are depends on the partition.
        """
        after: str | None = ""
        while after is not None:
            parameters: dict[str, Any] = {
                "partition": held.partition,
                "version": self._version,
                "limit": PAGE_RECORDS,
                "after": after,
            }
            if sample.buckets > 1:
                parameters["sample"] = f"{sample.bucket}/{sample.buckets}"
            answer = self._get(held, self._records, parameters, time.monotonic() + wait_s)
            yield answer.text
            after = answer.json()["next"]

    def key_count(self, held: HeldPartition, deadline_s: float) -> int:
        """Return how many keys a partition has on this node; raises NotHeldError."""
        parameters = {"partition": held.partition, "version": self._version, "limit": 1}
        return int(self._get(held, self._records, parameters, deadline_s).json()["total"])

    def record(self, held: HeldPartition, key: str, deadline_s: float) -> str | None:
        """Return a key's record on this node as JSON text, or None where it has none; raises NotHeldError."""
        path = f"{self._records}/{quote(key, safe='')}"
        answer = self._get(held, path, {"version": self._version}, deadline_s)
        return None if answer.status_code == HTTPStatus.NOT_FOUND else answer.text

    def _held_by(self, url: str, name: str, routing: RoutingTable) -> list[HeldPartition]:
        answer = self._session.get(
            f"{url}/api/partitions", headers={HOP_HEADER: HOP_ANY}, timeout=REQUEST_TIMEOUT_S
        )
        answer.raise_for_status()
        return [
            HeldPartition(
                name,
                url,
                report["partition"],
                "owner" if routing.owners.get((self._source_topic, report["partition"])) == url else STANDBY,
            )
            for report in answer.json()
            if report["read_model"] == self._model
            and report["version"] == self._version
            and report["is_held"]
            and report["is_ready"]
        ]

    def _get(
        self, held: HeldPartition, path: str, parameters: dict[str, Any], deadline_s: float
    ) -> requests.Response:
        why = ""
        while True:
            try:
                answer = self._session.get(
                    held.url + path,
                    params=parameters,
                    headers={HOP_HEADER: HOP_ANY},
                    timeout=REQUEST_TIMEOUT_S,
                )
            except requests.RequestException as error:
                why = type(error).__name__
            else:
                if answer.ok or _is_unknown_key(answer):
                    return answer
                why = f"{answer.status_code} {answer.text[:200]}"
                if answer.status_code not in TRY_AGAIN:
                    raise NotHeldError(f"{held.place} at {held.url} refused {path}: {why}")
            if time.monotonic() > deadline_s:
                raise NotHeldError(f"{held.place} at {held.url} does not answer for {path}: {why}")
            time.sleep(RETRY_S)

    def _routing(self) -> RoutingTable:
        admin = admin_client(self._settings.kafka.bootstrap_servers)
        try:
            return routing_table(admin, GROUP, REQUEST_TIMEOUT_S) or RoutingTable()
        except KafkaException as error:
            message = f"Kafka does not say which query nodes there are ({error}): is the broker up?"
            raise KafkaUnavailableError(message) from error


def _is_unknown_key(answer: requests.Response) -> bool:
    return answer.headers.get("Foldlake-Reason") == "unknown-key"
