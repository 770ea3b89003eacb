"""The materializer of a query node: consumes changelogs into the local store, and tells the HTTP workers who owns what.

`python -m query_api.materializer`. It may be killed at any time; it waits for whatever of Kafka, registry and version
record is not there yet.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from include.declarations.read_model import load_read_models
from include.errors import KafkaUnavailableError
from include.settings import Settings
from query_api.cluster import node_state
from query_api.cluster.cluster_observer import ClusterObserver, ClusterView
from query_api.cluster.membership import Membership
from query_api.cluster.node_state import HeldPartition, NodeState
from query_api.cluster.registry_watch import RegistryWatch
from query_api.materializer.reconcile import build_state, state_before, wanted_partitions
from query_api.materializer.version_follower import FollowedVersion, VersionReference
from query_api.materializer.version_followers import FollowedVersions, Key
from query_api.store.directory import StoreDirectory

OBSERVE_INTERVAL_S = 1.0
HEARTBEAT_S = 1.0

log = logging.getLogger(__name__)


class Materializer:
    """The threads of one node's materializer and the loop that keeps them in step with the cluster."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        models = load_read_models(settings.read_models_dir)
        self._source_topics = {name: model.source_topic for name, model in models.items()}
        self._directory = StoreDirectory(settings.store_dir, settings.node.store_map_size_mb * 1024 * 1024)
        self._directory.lock()
        self._is_told_to_stop = False
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._look_again = threading.Event()
        self._membership = Membership(settings, self._on_assignment)
        self._observer = ClusterObserver(settings, self._source_topics)
        self._registry_watch = RegistryWatch(settings, self._look_again.set)
        self._view: ClusterView | None = None
        self._waiting_for = "Kafka"
        self._versions = FollowedVersions(self._directory, self._begin, self._forget)
        self._threads: list[_WatchedThread] = []
        self._before = self._state_before()

    def _state_before(self) -> NodeState:
        """Return what the process before this one wrote last; its readiness only if nobody has answered in its place."""
        empty = NodeState(node=self._settings.node.name, url=self._settings.node.advertised_url)
        # The workers call a state too old after the session timeout; this process needs a moment to write its own.
        max_age_s = self._settings.node.session_timeout_s - HEARTBEAT_S
        return state_before(node_state.read(self._settings.store_dir), empty, max_age_s)

    def run(self) -> None:
        """Work until `stop`; raises whatever ended one of the threads."""
        self._threads = [
            _WatchedThread("membership", self._membership.run_once, self._stopping, self._changed.set),
            _WatchedThread("observer", self._observe, self._stopping, self._changed.set),
            _WatchedThread("registry", self._registry_watch.run_once, self._stopping, self._changed.set),
        ]
        for thread in self._threads:
            thread.start()
        try:
            while not self._is_told_to_stop:
                self._step()
                self._changed.wait(HEARTBEAT_S)
                self._changed.clear()
            log.info("stops, as it was state_published to")
        finally:
            self._shut_down()

    def stop(self) -> None:
        """End `run` within a heartbeat.

        Signal handlers call it: it does nothing but set an attribute. An event's lock or a log's stream may be held
        by the very code that the signal has interrupted.
        """
        self._is_told_to_stop = True

    def _shut_down(self) -> None:
        self._stopping.set()
        self._look_again.set()
        self._versions.stop()
        for thread in self._threads:
            thread.join(OBSERVE_INTERVAL_S * 2)
        self._membership.close()
        self._directory.unlock()

    def _observe(self) -> None:
        """Look at the cluster once, then wait for the next turn or a reason to look again."""
        try:
            self._view = self._observer.observe()
            self._waiting_for = ""
        except KafkaUnavailableError as error:
            self._waiting_for = str(error)
            log.warning("waits: %s", error)
        self._changed.set()
        self._look_again.wait(OBSERVE_INTERVAL_S)
        self._look_again.clear()

    def _on_assignment(self) -> None:
        self._changed.set()
        self._look_again.set()

    def _step(self) -> None:
        """Bring subscriptions, followed versions and the state file in step with the newest view."""
        for thread in self._threads:
            if thread.failure is not None:
                raise thread.failure
        view = self._view
        if view is not None:
            self._membership.subscribe(t for t in set(self._source_topics.values()) if t in view.topics)
            self._versions.step(view)
        state = build_state(
            self._before,
            view,
            self._source_topics,
            self._owned(),
            self._versions.running,
            self._settings.node.standby_replicas,
        )
        for (model, number), version in self._versions.running.items():
            version.hold(wanted_partitions(state, model, number))
        node_state.write(
            self._settings.store_dir,
            replace(
                state,
                written_at=time.time(),
                is_kafka_reachable=not self._waiting_for,
                waiting_for=self._waiting_for,
            ),
        )
        self._versions.state_published()

    def _owned(self) -> frozenset[tuple[str, int]] | None:
        return self._membership.assigned if self._membership.has_joined else None

    def _begin(self, reference: VersionReference) -> FollowedVersion:
        version = FollowedVersion(
            self._settings,
            reference,
            self._directory,
            ready_before=[p for p, held in self._held_before(reference).items() if held.is_ready],
            on_change=self._changed.set,
        )
        version.start()
        return version

    def _forget(self, key: Key) -> None:
        self._before = self._before.holding_nothing(key)

    def _held_before(self, reference: VersionReference) -> dict[int, HeldPartition]:
        model = self._before.models.get(reference.model)
        version = None if model is None else model.versions.get(reference.number)
        return {} if version is None else version.partitions


class _WatchedThread(threading.Thread):
    """Calls `turn` until stopping; an error ends it and is kept."""

    def __init__(
        self, name: str, turn: Callable[[], None], stopping: threading.Event, on_failure: Callable[[], None]
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._turn = turn
        self._stopping = stopping
        self._on_failure = on_failure
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
        except Exception as error:  # noqa: BLE001 - the main loop raises it again
            self.failure = error
            self._on_failure()
