"""Starts and ends the followers of all versions, pauses failed ones, and removes stores.

HTTP workers use a store while the node's state lists its partitions. A store is therefore removed only after a
state without its partitions was published, the workers have read that state, and the store's follower has ended.
An intact store is never removed because of another error: only a store that is damaged, one whose version has ended, and, when
the disk is full, one of a version that is not live and has not been loaded completely.
Nothing here blocks, or only for the timeout of a shared store's server: the calling thread also publishes the node's heartbeat.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from include.versions.version_record import ENDED_STAGES, Stage
from query_api.cluster.cluster_observer import ClusterView
from query_api.errors import StoreUnusableError, StoreWriteError
from query_api.materializer.reconcile import versions_to_follow
from query_api.materializer.version_follower import VersionFollower, VersionReference
from query_api.store.directory import StoreDirectory

# Workers check for a new state every 50 ms; a lookup that started with the previous state has ended after this time.
STATE_PROPAGATION_S = 0.2
# A failed version that is not live is restarted after this time, in which an operator can free disk space.
PAUSE_S = 60.0
STOP_TIMEOUT_S = 15.0
REMOVAL_RETRY_S = 10.0

log = logging.getLogger(__name__)

Key = tuple[str, int]


@dataclass
class _Ending:
    """A follower that is ending, and when a state without its partitions was published."""

    follower: VersionFollower
    is_discarded: bool
    published_at: float | None = None

    def is_over(self) -> bool:
        """Whether its store has neither a writer nor a worker that reads from it."""
        return (
            not self.follower.is_alive()
            and self.published_at is not None
            and time.monotonic() >= self.published_at + STATE_PROPAGATION_S
        )


class VersionFollowers:
    """The followers of all versions, reconciled with the cluster. Not thread-safe."""

    def __init__(
        self,
        directory: StoreDirectory,
        start: Callable[[VersionReference], VersionFollower],
        forget: Callable[[Key], None],
    ) -> None:
        """Follow into the stores of `directory`.

        start: starts the thread of a version.
        forget: called when a version ends: its partitions in an earlier state are then invalid.
        """
        self._directory = directory
        self._start = start
        self._forget = forget
        self._ending: dict[Key, _Ending] = {}
        self._paused_until: dict[Key, float] = {}
        self._next_removal_s = 0.0
        self.running: dict[Key, VersionFollower] = {}

    def step(self, view: ClusterView) -> None:
        """Start and end followers as the view requires; raises the failure of a live version."""
        self._end_followers(view)
        self._remove_stores(view)
        self._start_followers(view)

    def state_published(self) -> None:
        """Note that the node's current state was published, without the partitions of versions that have ended."""
        for ending in self._ending.values():
            if ending.published_at is None:
                ending.published_at = time.monotonic()

    def stop(self) -> bool:
        """End all followers, and wait until their stores are closed; return whether they are."""
        for follower in self.running.values():
            follower.end()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        followers = [*self.running.values(), *(ending.follower for ending in self._ending.values())]
        for follower in followers:
            follower.join(max(0.0, deadline - time.monotonic()))
        return not any(follower.is_alive() for follower in followers)

    def _end_followers(self, view: ClusterView) -> None:
        wanted = {(r.model, r.number): r for r in versions_to_follow(view)}
        for key, follower in list(self.running.items()):
            if _stage(view, key) in ENDED_STAGES:
                self._end(key, discard=True)
            elif follower.failure is not None:
                self._end_failed(key, follower.failure, view)
            elif follower.partitions() is not None and self._directory.is_reported_damaged(*key):
                log.warning(
                    "the store of %s v%d is damaged or missing: rebuilding it from the changelog", *key
                )
                self._end(key, discard=True)
            elif wanted.get(key) != follower.reference:
                self._end(key, discard=False)
            elif follower.write_error and self._may_be_dropped(key, follower, view):
                self._pause(key, follower.write_error, "removing its store, which is incomplete")
                self._end(key, discard=True)

    def _may_be_dropped(self, key: Key, follower: VersionFollower, view: ClusterView) -> bool:
        """Whether a store may be removed to free space: it is this node's, not live, and not loaded completely yet."""
        partitions = follower.partitions()
        return (
            _stage(view, key) is not Stage.LIVE
            and not self._directory.is_shared(key[0])
            and partitions is not None
            and not all(partition.is_ready for partition in partitions.values())
        )

    def _pause(self, key: Key, error: object, consequence: str) -> None:
        log.error(
            "%s v%d failed and is not live: %s, and restarting it in %d s. Error: %s",
            *key,
            consequence,
            PAUSE_S,
            error,
        )
        self._paused_until[key] = time.monotonic() + PAUSE_S

    def _end_failed(self, key: Key, failure: Exception, view: ClusterView) -> None:
        is_unusable = isinstance(failure, StoreUnusableError)
        if is_unusable:
            log.warning("%s", failure)
        elif _stage(view, key) is Stage.LIVE:
            raise failure
        else:
            self._pause(key, failure, "keeping its store")
        self._end(key, discard=is_unusable)

    def _end(self, key: Key, *, discard: bool) -> None:
        follower = self.running.pop(key)
        follower.end(discard=discard)
        self._ending[key] = _Ending(follower, discard)
        self._forget(key)

    def _remove_stores(self, view: ClusterView) -> None:
        for key, ending in list(self._ending.items()):
            if ending.is_over() and (not ending.is_discarded or self._is_removed(key)):
                del self._ending[key]
        for key in self._directory.stored_versions():
            stage = _stage(view, key)
            if stage in ENDED_STAGES and key not in self.running and key not in self._ending:
                log.info("removing the store of %s v%d, which is %s", *key, stage)
                self._is_removed(key)

    def _is_removed(self, key: Key) -> bool:
        """Remove a store; return whether it is gone. The server of a shared store may be down: it is then tried again later."""
        if time.monotonic() < self._next_removal_s:
            return False
        try:
            self._directory.discard(*key)
        except StoreWriteError as error:
            log.warning("cannot remove the store of %s v%d: %s", *key, error)
            self._next_removal_s = time.monotonic() + REMOVAL_RETRY_S
            return False
        return True

    def _start_followers(self, view: ClusterView) -> None:
        for reference in versions_to_follow(view):
            key = (reference.model, reference.number)
            if key not in self.running and key not in self._ending and not self._is_paused(key, view):
                self.running[key] = self._start(reference)

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
    return record.stage_of(number) if record else None
