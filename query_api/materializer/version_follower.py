"""One version of a read model on this node: a thread that opens its store, follows its changelog, and closes it."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from include.kafka.schema_registry import SchemaRegistry
from include.settings import Settings
from query_api.cluster.node_state import HeldPartition
from query_api.errors import FollowingStoppedError, StoreUnusableError
from query_api.materializer.changelog_follower import Follower, follower_consumer
from query_api.store.base import Binding
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb.writer import LmdbWriter

HOUSEKEEPING_INTERVAL_S = 1.0
# A store that has worked for so long did not take its writer down.
PROVED_GOOD_S = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class VersionReference:
    """Which version of which read model, and where its changelog is."""

    model: str
    number: int
    changelog_topic: str
    partition_count: int
    binding: Binding


class FollowedVersion(threading.Thread):
    """Follows one version until it is stopped or fails; `failure` says how it ended."""

    def __init__(
        self,
        settings: Settings,
        reference: VersionReference,
        directory: StoreDirectory,
        *,
        ready_before: Iterable[int],
        on_change: Callable[[], None],
    ) -> None:
        super().__init__(name=f"{reference.model}.v{reference.number}", daemon=True)
        self.reference = reference
        self.failure: Exception | None = None
        self._settings = settings
        self._directory = directory
        self._ready_before = tuple(ready_before)
        self._on_change = on_change
        self._stopping = threading.Event()
        self._is_discarded = False
        self._wanted: frozenset[int] = frozenset()
        self._follower: Follower | None = None
        self._follower_lock = threading.Lock()  # whoever asks the follower needs its consumer open
        self._held_last: dict[int, HeldPartition] | None = None
        self.records = 0

    def hold(self, partitions: frozenset[int]) -> None:
        """Say which partitions to hold from now on."""
        self._wanted = partitions
        follower = self._follower
        if follower is not None:
            follower.hold(partitions)

    def partitions(self) -> dict[int, HeldPartition] | None:
        """Return every partition held, after the end those held last; None while the store is being opened."""
        with self._follower_lock:
            return self._held_last if self._follower is None else self._follower.partitions()

    @property
    def bad_records(self) -> int:
        """Changelog records passed over since the process started."""
        follower = self._follower
        return 0 if follower is None else follower.bad_records

    def end(self, *, discard: bool = False) -> None:
        """Say that following is to end and the store to be closed, and wait for neither.

        discard: the store is going to be removed, and need not be whole on disk.
        """
        self._is_discarded = discard
        self._stopping.set()
        follower = self._follower
        if follower is not None:
            follower.stop()

    def run(self) -> None:
        """Follow; a failure is kept for the materializer to decide about."""
        try:
            self._follow()
        except Exception as error:
            if not isinstance(error, StoreUnusableError):
                log.exception("following %s ended", self.name)
            self.failure = error
            self._on_change()

    def _follow(self) -> None:
        reference = self.reference
        store = self._directory.open_writer(
            reference.model,
            reference.number,
            reference.partition_count,
            reference.binding,
            may_be_new=not self._ready_before,
        )
        is_whole = False
        try:
            with suppress(FollowingStoppedError):
                self._follow_into(store)
            is_whole = not self._is_discarded
        finally:
            if is_whole:
                self._directory.close_writer(store, reference.model, reference.number)
            else:
                store.close(sync=False)

    def _follow_into(self, store: LmdbWriter) -> None:
        """Follow until stopped; raises what ended it."""
        reference = self.reference
        consumer = follower_consumer(
            self._settings.kafka.bootstrap_servers, self._settings.node.advertised_url
        )
        try:
            follower = Follower(
                reference.changelog_topic,
                store,
                consumer,
                SchemaRegistry(self._settings.registry.url),
                release_grace_s=self._settings.node.release_grace_s,
                ready_before=self._ready_before if store.positions() else (),
                on_change=self._on_change,
            )
            follower.hold(self._wanted)
            self._follower = follower
            self._on_change()
            began = next_housekeeping = time.monotonic()
            while not self._stopping.is_set():
                follower.run_once()
                if time.monotonic() >= next_housekeeping:
                    next_housekeeping = time.monotonic() + HOUSEKEEPING_INTERVAL_S
                    store.housekeep()
                    self.records = store.record_count()
                    if time.monotonic() >= began + PROVED_GOOD_S:
                        self._directory.proved_good(reference.model, reference.number)
        finally:
            self._let_go()
            consumer.close()

    def _let_go(self) -> None:
        """Nobody asks the follower from now on: its consumer is about to be closed."""
        with self._follower_lock:
            if self._follower is not None:
                self._held_last = self._follower.partitions()
                self._follower = None
