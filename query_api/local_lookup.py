"""Answering from this node's own store."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from include.avro_schemas import RecordSchema
from include.changelog import StateRecord, decode_state_record
from include.settings import Settings
from query_api.bound import MAX_WAIT_S, PositionBound
from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.failures import FailureReason, LookupFailedError
from query_api.node_state import ModelState, NodeState, NodeStateWatch
from query_api.routing import partition_of
from query_api.state_position import RawDecoder
from query_api.store.base import HeldRecord, Page, Position, ReadableStore, Sample
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb_reader import LmdbReader

BOUND_POLL_S = 0.002


class Role(StrEnum):
    """In which role a node answered."""

    OWNER = "owner"
    STANDBY = "standby"


@dataclass(frozen=True)
class Place:
    """Where a key lives: the read model's state here, the version asked for, and the key's partition."""

    state: NodeState
    model: ModelState
    version: int
    key: bytes
    partition: int

    @property
    def owner(self) -> str | None:
        """URL of the partition's owner."""
        return self.model.owners.get(self.partition)

    @property
    def is_owned_here(self) -> bool:
        """Whether this node owns the key's partition."""
        return self.partition in self.model.owned

    @property
    def role(self) -> Role:
        """In which role this node answers."""
        return Role.OWNER if self.is_owned_here else Role.STANDBY


@dataclass(frozen=True)
class LocalAnswer:
    """A record found here: the changelog's value and its fields without logical types."""

    place: Place
    role: Role
    record: HeldRecord
    raw: dict[str, Any]


class LocalLookup:
    """Looks keys up in this node's stores. One for each HTTP worker process; safe for use by several threads."""

    def __init__(self, settings: Settings) -> None:
        self.node_name = settings.node_name
        self._watch = NodeStateWatch(settings.store_dir)
        self._max_age_s = float(settings.node_session_timeout_s)
        self._directory = StoreDirectory(settings.store_dir, settings.node_store_map_size_mb * 1024 * 1024)
        self._readers: dict[tuple[str, int], tuple[LmdbReader, RawDecoder]] = {}
        self._opening = threading.Lock()

    def state(self) -> NodeState | None:
        """Return what the materializer said last; None when it has never said anything."""
        return self._watch.current()

    def place(self, model_name: str, key: bytes, version: int | None = None) -> Place:
        """Return where a key lives; raises LookupFailedError when nobody can say."""
        state, model, number = self._version(model_name, version)
        return Place(state, model, number, key, partition_of(key, model.partition_count))

    def partition_place(self, model_name: str, partition: int, version: int | None = None) -> Place:
        """Return a partition held by this node, as the place of no key in particular; raises LookupFailedError."""
        state, model, number = self._version(model_name, version)
        if partition not in model.versions[number].partitions:
            where = f"partition {partition} of {model_name} v{number}"
            raise LookupFailedError(FailureReason.NOT_OWNER, f"{self.node_name} does not hold {where}.")
        return Place(state, model, number, b"", partition)

    def _version(self, model_name: str, version: int | None) -> tuple[NodeState, ModelState, int]:
        state = self._watch.current()
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

    def is_ready(self, place: Place) -> bool:
        """Whether this node holds the key's partition and its records were complete."""
        held = place.model.versions[place.version].partitions.get(place.partition)
        return held is not None and held.is_ready and place.state.age_s() <= self._max_age_s

    def find(self, place: Place, bound: PositionBound | None = None) -> LocalAnswer:
        """Return the key's record from this node's store; with a bound, wait a little for it.

        Raises LookupFailedError.
        """
        if not self.is_ready(place):
            raise LookupFailedError(FailureReason.NOT_READY, self._why_not_ready(place))
        answer = self._read(place)
        if bound is not None:
            deadline = time.monotonic() + MAX_WAIT_S
            while answer is None or not bound.is_met_by(answer.raw["source_offset"]):
                if time.monotonic() >= deadline:
                    raise LookupFailedError(FailureReason.NOT_UP_TO_BOUND, _behind(bound, answer))
                time.sleep(BOUND_POLL_S)
                answer = self._read(place)
        if answer is None:
            detail = f"{place.model.name} v{place.version} has no record for the key {place.key.decode()!r}."
            raise LookupFailedError(FailureReason.UNKNOWN_KEY, detail)
        return answer

    def page(self, place: Place, after: bytes, limit: int, sample: Sample) -> Page:
        """Return some of the partition's records from this node's store; raises LookupFailedError."""
        if not self.is_ready(place):
            raise LookupFailedError(FailureReason.NOT_READY, self._why_not_ready(place))
        try:
            return self._reader(place)[0].page(place.partition, after, limit, sample)
        except StoreDamagedError as error:
            self._report(place, error)
            raise LookupFailedError(FailureReason.NOT_READY, str(error)) from error
        except StoreMissingError as error:
            raise LookupFailedError(FailureReason.NOT_READY, str(error)) from error

    def _read(self, place: Place) -> LocalAnswer | None:
        try:
            store, decoder = self._reader(place)
            record = store.get(place.partition, place.key)
            if record is None:
                return None
            raw = decoder.fields(record.value)
        except StoreDamagedError as error:
            self._report(place, error)
            raise LookupFailedError(FailureReason.NOT_READY, str(error)) from error
        except StoreMissingError as error:
            raise LookupFailedError(FailureReason.NOT_READY, str(error)) from error
        return LocalAnswer(place, place.role, record, raw)

    def _reader(self, place: Place) -> tuple[LmdbReader, RawDecoder]:
        name = (place.model.name, place.version)
        opened = self._readers.get(name)
        if opened is None or opened[0].is_replaced():
            opened = self._open(place, opened)
        return opened

    def _open(
        self, place: Place, stale: tuple[LmdbReader, RawDecoder] | None
    ) -> tuple[LmdbReader, RawDecoder]:
        name = (place.model.name, place.version)
        with self._opening:
            if self._readers.get(name) is stale:
                # The old environment is closed when the last thread that still reads from it has finished.
                self._readers.pop(name, None)
                reader = self._directory.open_reader(
                    place.model.name, place.version, place.model.partition_count
                )
                self._readers[name] = (reader, RawDecoder(reader.schema_text))
            return self._readers[name]

    def _report(self, place: Place, error: StoreDamagedError) -> None:
        self._readers.pop((place.model.name, place.version), None)
        try:
            self._directory.report_damage(place.model.name, place.version, error)
        except StoreMissingError:
            return

    def _why_not_ready(self, place: Place) -> str:
        age_s = place.state.age_s()
        where = f"partition {place.partition} of {place.model.name} v{place.version}"
        if age_s > self._max_age_s:
            return f"The materializer of {self.node_name} has been silent for {age_s:.0f} s."
        if place.partition not in place.model.versions[place.version].partitions:
            return f"{self.node_name} does not hold {where}."
        return f"{self.node_name} is still reading {where} from its changelog."

    def decode(self, answer: LocalAnswer) -> StateRecord:
        """Return the whole state record of an answer, with its logical types."""
        return self.decoder(answer.place)(answer.record)

    def decoder(self, place: Place) -> Callable[[HeldRecord], StateRecord]:
        """Return what decodes the records of a version's store, each schema read once."""
        store, _ = self._reader(place)

        @cache
        def schema_of(schema_id: int) -> RecordSchema:
            return RecordSchema.parse(store.schema_text(schema_id) or "", f"schema {schema_id} in the store")

        return lambda record: decode_state_record(record.value, schema_of)

    def positions(self, model: ModelState, version: int) -> dict[int, Position]:
        """Return the stored position of every partition held here; empty when there is no store yet."""
        try:
            store: ReadableStore = self._reader(Place(_NO_STATE, model, version, b"", 0))[0]
            return store.positions()
        except (StoreMissingError, StoreDamagedError):
            return {}


_NO_STATE = NodeState(node="", url="")


def _behind(bound: PositionBound, answer: LocalAnswer | None) -> str:
    if answer is None:
        return (
            f"The key has no record after {MAX_WAIT_S:g} s; asked for was source offset {bound.min_offset}."
        )
    at = answer.raw["source_offset"]
    return (
        f"The key's record is at source offset {at} after {MAX_WAIT_S:g} s; asked for was {bound.min_offset}."
    )
