"""All versions that this node follows: begun, ended, set aside after a failure, and their stores removed.

HTTP workers answer from a store as long as the node's state says that it is held. So a store is removed only when the
state has said that nothing is held of it, the workers have heard that, and nobody writes it any more. Nothing here
waits: whoever calls is also the node's sign of life.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from include.versions.version_record import Stage
from query_api.cluster.cluster_observer import ClusterView
from query_api.errors import StoreUnusableError
from query_api.materializer.reconcile import FollowedPartitions, followed
from query_api.materializer.version_follower import VersionReference
from query_api.store.directory import StoreDirectory

# The workers look for a new state every 50 ms; a lookup that began with the one before has ended by then.
STATE_PROPAGATION_S = 0.2
# A version that nobody reads from yet begins again after so long: whoever is called has time to make room.
PAUSE_S = 60.0
STOP_TIMEOUT_S = 15.0
ENDED_STAGES = frozenset({Stage.RETIRED, Stage.ABANDONED})

log = logging.getLogger(__name__)

Key = tuple[str, int]


class Following(FollowedPartitions, Protocol):
    """What is asked of a version's thread (FollowedVersion)."""

    reference: VersionReference
    failure: Exception | None

    def hold(self, partitions: frozenset[int]) -> None:
        """Say which partitions to hold from now on."""

    def end(self, *, discard: bool = False) -> None:
        """Say that it is to end."""

    def is_alive(self) -> bool:
        """Whether it still runs."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""


@dataclass
class _Ended:
    """A version that was state_published to end, and when the state that no longer counts it was written."""

    version: Following
    is_discarded: bool
    told_at: float | None = None

    def is_over(self) -> bool:
        """Whether nobody writes its store any more, and nobody answers from it."""
        return (
            not self.version.is_alive()
            and self.told_at is not None
            and time.monotonic() >= self.told_at + STATE_PROPAGATION_S
        )


class FollowedVersions:
    """The versions' threads, in step with the cluster. Not for use by several threads at once."""

    def __init__(
        self,
        directory: StoreDirectory,
        begin: Callable[[VersionReference], Following],
        forget: Callable[[Key], None],
    ) -> None:
        """Follow into the stores of `directory`.

        begin: starts the thread of a version.
        forget: called when a version is ended: what an earlier state said of it holds no longer.
        """
        self._directory = directory
        self._begin = begin
        self._forget = forget
        self._ended: dict[Key, _Ended] = {}
        self._paused_until: dict[Key, float] = {}
        self.running: dict[Key, Following] = {}

    def step(self, view: ClusterView) -> None:
        """Begin and end what the view asks for; raises the failure of a live version."""
        self._end_some(view)
        self._remove_stores(view)
        self._begin_some(view)

    def state_published(self) -> None:
        """Hear that the node's state has been written as it is now, without what has ended."""
        for ended in self._ended.values():
            if ended.told_at is None:
                ended.told_at = time.monotonic()

    def stop(self) -> None:
        """End all, and wait until their stores are closed."""
        for running in self.running.values():
            running.end()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for version in (*self.running.values(), *(ended.version for ended in self._ended.values())):
            version.join(max(0.0, deadline - time.monotonic()))

    def _end_some(self, view: ClusterView) -> None:
        wanted = {(r.model, r.number): r for r in followed(view)}
        for key, version in list(self.running.items()):
            if _stage(view, key) in ENDED_STAGES:
                self._end(key, discard=True)
            elif version.failure is not None:
                self._end_failed(key, version.failure, view)
            elif version.partitions() is not None and self._directory.is_reported_damaged(*key):
                log.warning("the store of %s v%d is damaged: it is rebuilt", *key)
                self._end(key, discard=True)
            elif wanted.get(key) != version.reference:
                self._end(key, discard=False)

    def _end_failed(self, key: Key, failure: Exception, view: ClusterView) -> None:
        if isinstance(failure, StoreUnusableError):
            log.warning("%s", failure)
        elif _stage(view, key) is Stage.LIVE:
            raise failure
        else:
            log.error(
                "%s v%d is not live: its store is removed, and it begins again in %d s. It failed: %s",
                *key,
                PAUSE_S,
                failure,
            )
            self._paused_until[key] = time.monotonic() + PAUSE_S
        self._end(key, discard=True)

    def _end(self, key: Key, *, discard: bool) -> None:
        version = self.running.pop(key)
        version.end(discard=discard)
        self._ended[key] = _Ended(version, discard)
        self._forget(key)

    def _remove_stores(self, view: ClusterView) -> None:
        for key, ended in list(self._ended.items()):
            if ended.is_over():
                del self._ended[key]
                if ended.is_discarded:
                    self._directory.discard(*key)
        for key in self._directory.stored_versions():
            stage = _stage(view, key)
            if stage in ENDED_STAGES and key not in self.running and key not in self._ended:
                log.info("%s v%d is %s: its store is removed", *key, stage)
                self._directory.discard(*key)

    def _begin_some(self, view: ClusterView) -> None:
        for reference in followed(view):
            key = (reference.model, reference.number)
            if key not in self.running and key not in self._ended and not self._is_paused(key, view):
                self.running[key] = self._begin(reference)

    def _is_paused(self, key: Key, view: ClusterView) -> bool:
        until = self._paused_until.get(key)
        if until is None:
            return False
        if time.monotonic() < until and _stage(view, key) is not Stage.LIVE:
            return True
        del self._paused_until[key]
        return False


def _stage(view: ClusterView, key: Key) -> Stage | None:
    model, number = key
    record = view.versions.get(model)
    version = record.version(number) if record else None
    return version.stage if version else None
