"""The thread of one version on this node: opens the version's store, follows its changelog, and closes the store."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer

from include.boot_clock import Moment
from include.kafka.compacted_topics import changelog_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.settings import Settings
from include.waiting import wait_for
from query_api.cluster.node_state import PartitionState
from query_api.errors import (
    FollowingStoppedError,
    StoreFencedError,
    StoreFullError,
    StoreUnusableError,
    StoreWriteError,
)
from query_api.history.latencies import Arrival
from query_api.materializer.changelog_follower import ChangelogFollower
from query_api.materializer.followed_partitions import REFRESH_INTERVAL_S, OnStored, SharedPartitions
from query_api.materializer.peer_copy import PeerCopy
from query_api.store.background_check import BackgroundCheck
from query_api.store.base import Binding, StoreWriter
from query_api.store.commit_signal import announce_commit
from query_api.store.directory import StoreDirectory

HOUSEKEEPING_INTERVAL_S = 1.0
# A store that has been open for this long is assumed not to crash its writer.
STABLE_S = 10.0
TARGET_TIMEOUT_S, POLL_S = 10.0, 0.1
# How often the log tells how far the check of a store has come that must be checked before it is used.
OPENING_LOG_INTERVAL_S = 10.0
# How often a write is tried again that failed because the disk is full.
WRITE_RETRY_S = 2.0
# How soon the positions of a shared store are read again that another writer has continued.
FENCED_RETRY_S = 0.1

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class VersionReference:
    """A version of a read model, and its changelog."""

    model: str
    number: int
    partition_count: int
    binding: Binding

    @property
    def changelog_topic(self) -> str:
        """The topic of the changelog."""
        return self.binding.topic


class VersionFollower(threading.Thread):
    """Follows one version until `end` or an error; `failure` is the error."""

    def __init__(
        self,
        settings: Settings,
        reference: VersionReference,
        directory: StoreDirectory,
        *,
        previously_ready: Mapping[int, Moment],
        on_change: Callable[[], None],
        on_stored: OnStored | None = None,
    ) -> None:
        super().__init__(name=f"{reference.model}.v{reference.number}", daemon=True)
        self.reference = reference
        self.failure: Exception | None = None
        self._settings = settings
        self._directory = directory
        self._previously_ready = dict(previously_ready)
        is_shared = directory.is_shared(reference.model)
        self._shared = SharedPartitions(previously_ready) if is_shared else None
        self._next_refresh_s = 0.0
        self._on_change, self._on_stored = on_change, on_stored
        self._stopping = threading.Event()
        self._is_discarded = False
        self._target: frozenset[int] = frozenset()
        self._follower: ChangelogFollower | None = None
        self._follower_lock = threading.Lock()  # held while another thread queries the follower
        self._last_partitions: dict[int, PartitionState] | None = None
        self._open_error = ""
        self._next_log_s = 0.0
        self.opening = ""  # what is done before the store can be used; empty once it is open
        self.records = self.copied_records = 0

    def set_target(self, partitions: frozenset[int]) -> None:
        """Set the partitions to follow."""
        self._target = partitions
        follower = self._follower
        if follower is not None:
            follower.set_target(partitions)

    def partitions(self) -> dict[int, PartitionState] | None:
        """Return the followed partitions (after the end, the last ones); None while the store is being opened.

        Of a shared store, the partitions that this node can read, whoever writes them.
        """
        if self._shared is not None:
            return self._shared.states()
        with self._follower_lock:
            return self._last_partitions if self._follower is None else self._follower.partitions()

    def observe_ends(self, ends: Mapping[int, int], read_at: Moment) -> None:
        """Note the changelog's end offsets as they were when asked for at `read_at`."""
        if self._shared is not None:
            self._shared.observe_ends(ends, read_at)
        with self._follower_lock:
            if self._follower is not None:
                self._follower.observe_ends(ends, read_at)

    def arrivals(self) -> list[Arrival]:
        """Return of each partition that this node writes an event that has arrived since the last call, if there is one."""
        follower = self._follower
        return [] if follower is None else follower.arrivals()

    @property
    def bad_records(self) -> int:
        """Changelog records skipped since following started."""
        follower = self._follower
        return 0 if follower is None else follower.bad_records

    @property
    def write_error(self) -> str:
        """Why nothing can be written to the store; empty while it can be written."""
        follower = self._follower
        return self._open_error if follower is None else follower.write_error

    def end(self, *, discard: bool = False) -> None:
        """Request that following ends and the store is closed; returns immediately.

        discard: the store will be removed, so it need not be synced to disk.
        """
        self._is_discarded = discard
        self._stopping.set()
        follower = self._follower
        if follower is not None:
            follower.stop()

    def run(self) -> None:
        """Follow until `end` or an error; the materializer handles `failure`."""
        try:
            self._follow()
        except Exception as error:
            if not isinstance(error, StoreUnusableError):
                log.exception("following %s failed", self.name)
            self.failure = error
            self._on_change()

    def _follow(self) -> None:
        """Follow; while the store cannot be opened or written, keep its records and try again."""
        while not self._stopping.is_set():
            try:
                with suppress(FollowingStoppedError):
                    self._follow_once()
            except StoreFencedError as error:
                log.info("%s", error)
                self._stopping.wait(FENCED_RETRY_S)
            except StoreWriteError as error:
                self._open_error = str(error)
                log.warning("%s", error)
                self._on_change()
                self._stopping.wait(WRITE_RETRY_S)

    def _follow_once(self) -> None:
        reference = self.reference
        store = self._directory.open_writer(
            reference.model,
            reference.number,
            reference.partition_count,
            reference.binding,
            may_create=not self._previously_ready,
            while_checking=self._note_opening,
        )
        self._open_error = self.opening = ""
        is_complete = False
        try:
            with suppress(FollowingStoppedError):
                self._follow_into(store)
            is_complete = not self._is_discarded
        finally:
            if is_complete:
                self._directory.close_writer(store, reference.model, reference.number)
            else:
                self._directory.abandon_writer(store, reference.model, reference.number)

    def _note_opening(self, progress: str) -> None:
        """Note the progress of the check before the store is opened; raises FollowingStoppedError to end it."""
        if self._stopping.is_set():
            raise FollowingStoppedError(f"Opening the store of {self.name} was stopped.")
        is_first = not self.opening
        self.opening = f"its store is checked before it is used ({progress or 'beginning'})"
        if is_first or time.monotonic() >= self._next_log_s:
            self._next_log_s = time.monotonic() + OPENING_LOG_INTERVAL_S
            log.info("%s: %s", self.name, self.opening)

    def _follow_into(self, store: StoreWriter) -> None:
        """Follow until `end`; raises the error that stopped it."""
        reference = self.reference
        consumer = changelog_consumer(self._settings.kafka_connection, self._settings.advertised_url)
        check = BackgroundCheck(self._directory, reference.model, reference.number)
        previously_ready = self._previously_ready if store.positions() else {}
        try:
            self._fill(store, consumer)
            follower = ChangelogFollower(
                reference.changelog_topic,
                store,
                consumer,
                SchemaRegistry(self._settings.registry.connection),
                # A shared store has the partitions for all nodes, whoever writes them.
                release_grace_s=0 if store.is_shared else self._settings.node.release_grace_s,
                previously_ready=previously_ready,
                on_change=self._on_change,
            )
            follower.on_stored = self._on_stored
            follower.set_target(self._target)
            self._follower = follower
            self._on_change()
            began = next_housekeeping = time.monotonic()
            while not self._stopping.is_set():
                self._run_once(follower)
                self._observe_store(store)
                if time.monotonic() >= next_housekeeping:
                    next_housekeeping = time.monotonic() + HOUSEKEEPING_INTERVAL_S
                    store.housekeep()
                    self.records = store.record_count()
                    if time.monotonic() >= began + STABLE_S:
                        self._directory.reset_attempts(reference.model, reference.number)
                    if self._shared is None:
                        check.step()
        finally:
            check.stop()
            self._detach()
            consumer.close()

    def _fill(self, store: StoreWriter, consumer: Consumer) -> None:
        """Fill a store that has no records from a peer, as far as there is one."""
        if store.is_shared or store.positions():
            return
        # Lookups are not to be answered from a store that is being filled.
        with self._follower_lock:
            self._last_partitions = {}
        self._on_change()
        # An interrupted copy has left records, also of keys that have been removed since.
        for partition in range(self.reference.partition_count):
            store.forget(partition)
        if not self._settings.node.copy_from_peers:
            return
        # Before its first assignment, a node does not know its partitions.
        wait_for(lambda: self._target or self._stopping.is_set(), timeout_s=TARGET_TIMEOUT_S, poll_s=POLL_S)
        self.opening = "its records are copied from a peer"
        version = self.reference.model, self.reference.number, self.reference.binding
        copy = PeerCopy(self._settings, consumer, version, self._stopping.is_set)
        try:
            copy.fill(store, self._target)
        finally:
            self.copied_records, self.opening = copy.records, ""

    def _run_once(self, follower: ChangelogFollower) -> None:
        """Apply what has arrived; while the disk is full, apply nothing and try again."""
        try:
            follower.run_once()
        except StoreFullError as error:
            log.warning("%s", error)
            self._on_change()
            self._stopping.wait(WRITE_RETRY_S)

    def _observe_store(self, store: StoreWriter) -> None:
        """Note what the writers of a shared store have written, and wake the lookups of this node that wait for it."""
        if self._shared is None or time.monotonic() < self._next_refresh_s:
            return
        self._next_refresh_s = time.monotonic() + REFRESH_INTERVAL_S
        if self._shared.refresh(store.readable_positions()):
            announce_commit(self._directory.path(self.reference.model, self.reference.number))

    def _detach(self) -> None:
        """Prevent other threads from querying the follower, whose consumer is about to be closed."""
        with self._follower_lock:
            if self._follower is not None:
                self._last_partitions = self._follower.partitions()
                self._previously_ready = {
                    p: state.confirmed for p, state in self._last_partitions.items() if state.is_ready
                }
                self._follower = None
