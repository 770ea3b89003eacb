"""Lookups in this node's own store."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from include.kafka.record_schema import RecordSchema
from include.kafka.state_record import StateRecord, decode_state_record
from include.position import SOURCE_OFFSET
from include.settings import Placement, Settings
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, watch_state
from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.lookup.lookup_results import (
    FailureReason,
    LocalAnswer,
    LocalPage,
    LookupFailedError,
    RecordPage,
)
from query_api.lookup.open_stores import OpenStore, OpenStores
from query_api.lookup.position_bound import MAX_WAIT_S, CommitWait, PositionBound
from query_api.lookup.routing import KeyLocation, partition_of
from query_api.lookup.served_offsets import ServedOffsets
from query_api.store.backends import store_directory
from query_api.store.base import (
    ALL_KEYS,
    ChangelogPosition,
    KeyRange,
    StoredRecord,
    StoreReader,
)
from query_api.store.stored_form import BadRecordError, unpacked

T = TypeVar("T")
SOURCE_OFFSET_NAME = SOURCE_OFFSET.name
# Every worker frees the disk space of a removed store within this time.
WATCH_INTERVAL_S = 5.0


class LocalLookup:
    """Looks keys up in this node's stores. One per HTTP worker process; thread-safe.

    placements: of each read model that is not in local stores, at least. served: up to where this node has answered.
    """

    def __init__(
        self, settings: Settings, placements: Mapping[str, Placement] = MappingProxyType({})
    ) -> None:
        store_dir, node = settings.store_dir, settings.node
        self.node_name = node.name
        self._watch = watch_state(store_dir)
        # After this time without a heartbeat or without Kafka, the group assigns the node's partitions to others.
        self.current_s = float(node.session_timeout_s)
        # Of both listeners.
        workers = node.http_workers + (node.peer_workers if settings.has_peer_listener else 0)
        directory = store_directory(settings, placements)
        self.max_key_bytes = directory.max_key_bytes
        self._directory = directory
        self._stores = OpenStores(directory)
        self.served = ServedOffsets(store_dir, workers)
        self._commits = CommitWait(ClientSlots(node.http_waiting_lookups, node.max_client_share))
        self._state: NodeState | None = None

    def state(self) -> NodeState | None:
        """Return the latest state from the materializer; None before the first one.

        Each new state also closes the stores that were removed.
        """
        state = self._watch.current()
        if state is not self._state:
            self._state = state
            models = state.models if state else {}
            versions = {(m.name, number) for m in models.values() for number in m.versions}
            self._stores.keep(versions)
            self.served.keep(models, versions)
        return state

    def watch(self) -> None:
        """Check the state periodically, so that a worker without requests closes removed stores too."""
        threading.Thread(target=self._watch_loop, name="node state", daemon=True).start()

    def _watch_loop(self) -> None:
        while True:
            time.sleep(WATCH_INTERVAL_S)
            self.state()

    def locate(self, model_name: str, key: bytes, version: int | None = None) -> KeyLocation:
        """Return a key's location; raises LookupFailedError when this node cannot determine it."""
        state, model, number = self._version(model_name, version)
        partition = partition_of(key, model.partition_count)
        stored = model.versions[number].partitions.get(partition)
        return KeyLocation(state, model, number, key, partition, stored)

    def locate_partition(self, model_name: str, partition: int, version: int | None = None) -> KeyLocation:
        """Return the location of a partition that this node stores, without a key; raises LookupFailedError."""
        location = self.partition_location(model_name, partition, version)
        if location.stored is None:
            where = f"partition {partition} of {model_name} v{location.version}"
            raise LookupFailedError(FailureReason.NOT_OWNER, f"{self.node_name} does not store {where}.")
        return location

    def partition_location(self, model_name: str, partition: int, version: int | None = None) -> KeyLocation:
        """Return the location of a partition, without a key, which this node need not store; raises LookupFailedError."""
        state, model, number = self._version(model_name, version)
        stored = model.versions[number].partitions.get(partition)
        return KeyLocation(state, model, number, b"", partition, stored)

    def _version(self, model_name: str, version: int | None) -> tuple[NodeState, ModelState, int]:
        state = self.state()
        if state is None:
            raise LookupFailedError(
                FailureReason.NOT_READY, "The materializer of this node has not started yet."
            )
        model = state.models.get(model_name)
        if model is None:
            reason = FailureReason.UNKNOWN_MODEL if state.models else FailureReason.NOT_READY
            raise LookupFailedError(reason, f"The version registry has no read model {model_name!r}.")
        number = model.live if version is None else version
        if number is None or model.partition_count == 0:
            raise LookupFailedError(FailureReason.NOT_READY, f"{model_name} has no live version yet.")
        if number not in model.versions:
            raise LookupFailedError(
                FailureReason.UNKNOWN_MODEL, f"{model_name} has no active version {number}."
            )
        return state, model, number

    def is_current(self, location: KeyLocation) -> bool:
        """Whether the end of the key's partition was confirmed recently; True for one that is not ready, as `find` reports."""
        stored = location.stored
        return stored is None or not stored.is_ready or stored.unconfirmed_s() <= self.current_s

    def _ready_partition(self, location: KeyLocation) -> PartitionState:
        """Return the key's partition; raises LookupFailedError when this node does not store it or has not caught up with it."""
        partition = location.stored
        if partition is None or not partition.is_ready or location.state.age_s() > self.current_s:
            raise LookupFailedError(FailureReason.NOT_READY, self._why_not_ready(location))
        return partition

    def find(
        self, location: KeyLocation, bound: PositionBound | None = None, covering: int = 0
    ) -> LocalAnswer:
        """Return the key's record from this node's store; with a bound, wait up to MAX_WAIT_S for it to be met.

        covering: the changelog offset up to which another node has answered. The store must have read up to it, and up to what
            this node has answered.
        Raises LookupFailedError.
        """
        partition = self._ready_partition(location)
        served = self.served.of_location(location)
        answer = self._read(location, partition, max(covering, served.of(location.partition)))
        if bound is not None and not _is_met(bound, answer):
            answer = self._await(location, partition, bound)
        if answer is None:
            detail = f"{location.model.name} v{location.version} has no record for the key {location.key.decode()!r}."
            raise LookupFailedError(FailureReason.UNKNOWN_KEY, detail, partition)
        served.extend(location.partition, answer.record.offset + 1)
        return answer

    def _await(self, location: KeyLocation, partition: PartitionState, bound: PositionBound) -> LocalAnswer:
        """Return the key's record once a commit has brought it to the bound; raises LookupFailedError."""
        try:
            answer = self._commits.first(
                self._directory.path(location.model.name, location.version),
                bound.client,
                lambda: self._read(location, partition),
                lambda found: _is_met(bound, found),
                MAX_WAIT_S,
            )
        except NoFreeSlotError as error:
            detail = f"The key's record is not at source offset {bound.min_offset}, and the lookup cannot wait for it: {error}."
            raise LookupFailedError(FailureReason.NOT_UP_TO_BOUND, detail, partition) from error
        if answer is None or not _is_met(bound, answer):
            raise LookupFailedError(FailureReason.NOT_UP_TO_BOUND, _bound_not_met(bound, answer), partition)
        return answer

    def page(
        self, location: KeyLocation, after: bytes, limit: int, keys: KeyRange = ALL_KEYS
    ) -> LocalPage[RecordPage]:
        """Return some of the partition's records from this node's store; raises LookupFailedError."""

        def read(store: StoreReader) -> RecordPage:
            page = store.scan(location.partition, keys, after=after, limit=limit)
            return RecordPage(unpacked(page), page.next, page.total)

        return self.read_partition(location, read)

    def read_partition(self, location: KeyLocation, read: Callable[[StoreReader], T]) -> LocalPage[T]:
        """Return what is read of a partition from this node's store; raises LookupFailedError, also for BadRecordError."""
        partition = self._ready_partition(location)
        try:
            store = self._store(location).reader
            # Before the scan: a commit in between brings records from after the position, never the reverse.
            position = store.positions().get(location.partition)
            return LocalPage(location, partition, read(store), store, position.next_offset if position else 0)
        except BadRecordError as error:
            path = self._directory.path(location.model.name, location.version)
            raise self._not_readable(location, StoreDamagedError.at(path, str(error))) from error
        except (StoreDamagedError, StoreMissingError) as error:
            raise self._not_readable(location, error) from error

    def _read(
        self, location: KeyLocation, partition: PartitionState, covering: int = 0
    ) -> LocalAnswer | None:
        """Return the key's record, if any; raises LookupFailedError if the store has not read up to the changelog offset `covering`."""
        try:
            opened = self._store(location)
            if covering and not opened.covers(location.partition, covering):
                raise LookupFailedError(FailureReason.NOT_READY, self._why_not_covered(location, covering))
            store, decoder, covered = opened
            record = store.get(location.partition, location.key)
            if record is None:
                return None
            raw = decoder.fields(record.value)
            # A worker that has answered with this record need not read the store's positions to answer with it again.
            if record.offset >= covered.get(location.partition, 0):
                covered[location.partition] = record.offset + 1
        except (StoreDamagedError, StoreMissingError) as error:
            raise self._not_readable(location, error) from error
        return LocalAnswer(location, partition, location.role, record, raw, store)

    def _store(self, location: KeyLocation) -> OpenStore:
        return self._stores.get(location.model.name, location.version, location.model.partition_count)

    def _not_readable(
        self, location: KeyLocation, error: StoreDamagedError | StoreMissingError
    ) -> LookupFailedError:
        """Return the lookup failure for a store that cannot be read; reports damage to the materializer."""
        if isinstance(error, StoreDamagedError):
            self._stores.report_damage(location.model.name, location.version, error)
        return LookupFailedError(FailureReason.NOT_READY, str(error))

    def _why_not_covered(self, location: KeyLocation, offset: int) -> str:
        where = f"partition {location.partition} of {location.model.name} v{location.version}"
        return f"{self.node_name} has not read {where} up to changelog offset {offset}, which has been answered already."

    def _why_not_ready(self, location: KeyLocation) -> str:
        age_s = location.state.age_s()
        where = f"partition {location.partition} of {location.model.name} v{location.version}"
        if age_s > self.current_s:
            return f"The materializer of {self.node_name} has not updated its state for {age_s:.0f} s."
        if location.partition not in location.model.versions[location.version].partitions:
            return f"{self.node_name} does not store {where}."
        return f"{self.node_name} is still reading {where} from its changelog."

    def decode(self, answer: LocalAnswer) -> StateRecord:
        """Return the whole state record of an answer, with its logical types; raises LookupFailedError."""
        return self.decoder(answer)(answer.record)

    def decoder(self, found: LocalAnswer | LocalPage[RecordPage]) -> Callable[[StoredRecord], StateRecord]:
        """Return a decoder that uses the schemas of the store that the records were read from, and caches them.

        The version's current store may be another one by now, and be empty. The decoder raises LookupFailedError.
        """

        @cache
        def schema_of(schema_id: int) -> RecordSchema:
            try:
                text = found.store.schema_text(schema_id)
            except (StoreDamagedError, StoreMissingError) as error:
                raise self._not_readable(found.location, error) from error
            return RecordSchema.parse(text or "", f"schema {schema_id} in the store")

        return lambda record: decode_state_record(record.value, schema_of)

    def positions(self, model: ModelState, version: int) -> dict[int, ChangelogPosition]:
        """Return the position of every partition in this node's store; empty while it has no store."""
        try:
            return self._stores.get(model.name, version, model.partition_count).reader.positions()
        except (StoreMissingError, StoreDamagedError):
            return {}


def _is_met(bound: PositionBound, answer: LocalAnswer | None) -> bool:
    return answer is not None and bound.is_met_by(answer.raw[SOURCE_OFFSET_NAME])


def _bound_not_met(bound: PositionBound, answer: LocalAnswer | None) -> str:
    if answer is None:
        return f"The key has no record after {MAX_WAIT_S:g} s; requested: source offset {bound.min_offset}."
    at = answer.raw[SOURCE_OFFSET_NAME]
    return f"The key's record is at source offset {at} after {MAX_WAIT_S:g} s; requested: {bound.min_offset}."
