"""The materializer of a query node: consumes changelogs into the local store, and publishes the node's state.

`python -m query_api.materializer` runs it. It can be killed at any time. It waits for Kafka, the schema registry and the
version registry while they are unavailable.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from include.boot_clock import Moment
from include.declarations.load import load_catalog
from include.errors import KafkaUnavailableError
from include.nodes.node_url import PeerRule
from include.nodes.peers import Peers
from include.nodes.placements import placements
from include.settings import Settings
from query_api.access.key_follower import KeyFollower
from query_api.cluster import node_state
from query_api.cluster.cluster_observer import ClusterObserver, ClusterView, RegistryWatch
from query_api.cluster.membership import Membership
from query_api.cluster.node_state import NodeState, PartitionState
from query_api.errors import FencedError, StoreLockedError
from query_api.history.latencies import Arrival, RecordTimes
from query_api.history.recorder import HistoryRecorder
from query_api.lookup.partition_status import peer_reports
from query_api.materializer.clock_watch import ClockWatch
from query_api.materializer.fold_watch import FoldWatch, forget_lost, read_all_served
from query_api.materializer.reconcile import (
    build_state,
    previous_state,
    target_partitions,
    with_standstill,
)
from query_api.materializer.version_follower import VersionFollower, VersionReference
from query_api.materializer.version_followers import Key, VersionFollowers
from query_api.materializer.watched_threads import WatchedThreads
from query_api.store.backends import store_directory

if TYPE_CHECKING:
    from query_api.traces.fold_traces import FoldTraces

OBSERVE_INTERVAL_S = 1.0
HEARTBEAT_S = 1.0

log = logging.getLogger(__name__)


class Materializer:
    """The threads of one node's materializer, and the loop that reconciles them with the cluster."""

    def __init__(self, settings: Settings, is_replaced: Callable[[], bool] = lambda: False) -> None:
        """Get ready, without a change to the node. is_replaced: whether a process that stops has a successor."""
        self._settings = settings
        self._is_replaced = is_replaced
        # Before joining the group: raises for a URL that no node can reach.
        peers = PeerRule.of_node(settings)
        catalog = load_catalog(settings.declaration_folders)
        for failure in catalog.failures:
            log.error("%s", failure)
        self._placements = placements(settings)
        self._source_topics = {name: model.source_topic for name, model in catalog.models.items()}
        self._directory = store_directory(settings, self._placements)
        self._is_stop_requested = False
        self._clock_watch = ClockWatch()
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._observe_now = threading.Event()
        self._membership = Membership(
            settings.kafka_connection,
            settings.node,
            settings.advertised_url,
            self._on_assignment,
        )
        self._observer = ClusterObserver(
            settings.kafka_connection, settings.topics.replication_factor, self._source_topics, peers
        )
        self._registry_watch = RegistryWatch(settings.kafka_connection, self._observe_now.set)
        self._keys = KeyFollower.of_node(settings)
        self._fold_traces = self._traces_of_folds() if settings.traces.is_on else None
        self._fold_watch = FoldWatch(
            self._observer.fold_progress,
            float(settings.stream.real_time_interval_s),
            settings.node.session_timeout_s,
            self._source_topics,
        )
        self._still_since: dict[Key, Moment] = {}
        self._taken_since_s: float | None = None
        self._view: ClusterView | None = None
        self._waiting_for = "Kafka"
        self._versions = VersionFollowers(self._directory, self._start_follower, self._forget)
        self._threads = WatchedThreads(self._stopping, self._changed.set)
        self._previous = NodeState(node=settings.node.name, url=settings.advertised_url)
        self._published: NodeState | None = None
        peers_asked = Peers(peers.tls)
        self._recorder = HistoryRecorder(
            settings.store_dir,
            lambda: self._published,
            self._arrivals,
            lambda state: peer_reports(peers_asked, state),
            lambda: RecordTimes(settings.kafka_connection),
            lambda: self._stopping.wait(HEARTBEAT_S),
        )

    def _previous_state(self) -> NodeState:
        """Return the state that the previous process published; its partitions only if workers still use that state."""
        # Workers reject a state older than the session timeout, and this process needs some time to publish its own.
        max_age_s = self._settings.node.session_timeout_s - HEARTBEAT_S
        return previous_state(node_state.read(self._settings.store_dir), self._previous, max_age_s)

    def observe(self) -> None:
        """Observe the cluster before `run`, so that the first step of that has a view; without Kafka, there is none."""
        try:
            self._view = self._observer.observe()
        except KafkaUnavailableError as error:
            log.warning("waiting for Kafka: %s", error)

    def run(self, *, waits: bool = False) -> None:
        """Take the place of the process before, and run until `stop`; raises the error of a thread that failed.

        waits: until that process has ended. Otherwise StoreLockedError says that it runs.
        """
        try:
            self._directory.lock(lambda: waits and not self._is_stop_requested)
        except StoreLockedError:
            if self._is_stop_requested:
                return
            raise
        self._previous = self._previous_state()
        turns = {
            "membership": self._membership.run_once,
            "observer": self._observe,
            "registry": self._registry_watch.run_once,
            "history": self._recorder.run_once,
        }
        if self._keys is not None:
            turns["keys"] = self._keys.run_once
        if self._fold_traces is not None:
            turns["traces"] = self._fold_traces.run_once
        self._threads.start(turns)
        try:
            while not self._is_stop_requested:
                self._clock_watch.step()
                self._step()
                self._changed.wait(HEARTBEAT_S)
                self._changed.clear()
            log.info("stopping")
        finally:
            self._shut_down()

    def stop(self) -> None:
        """End `run` within a heartbeat.

        Called by signal handlers, so it only sets an attribute: the interrupted code may hold the lock of an event
        or of a log stream.
        """
        self._is_stop_requested = True

    def _shut_down(self) -> None:
        self._stopping.set()
        self._observe_now.set()
        if self._versions.stop():
            # What is left changes nothing in the node, and can take seconds: another process need not wait for it.
            self._directory.unlock()
        self._threads.join(OBSERVE_INTERVAL_S * 2)
        self._recorder.close(keep_history=self._is_replaced())
        self._membership.close()
        self._directory.unlock()

    def _observe(self) -> None:
        """Observe the cluster once, then wait for the interval or until `_observe_now` is set."""
        store_dir = self._settings.store_dir
        followers = list(self._versions.running.values())
        served = read_all_served(store_dir, (follower.reference for follower in followers))
        try:
            self._view = view = self._observer.observe()
            forget_lost(store_dir, served, view)
            self._waiting_for = ""
            self._still_since = self._fold_watch.standstills(list(self._versions.running.values()), view)
        except KafkaUnavailableError as error:
            self._waiting_for = str(error)
            log.warning("waiting for Kafka: %s", error)
        self._changed.set()
        self._observe_now.wait(OBSERVE_INTERVAL_S)
        self._observe_now.clear()

    def _arrivals(self, key: Key) -> list[Arrival]:
        follower = self._versions.running.get(key)
        return [] if follower is None else follower.arrivals()

    def _on_assignment(self) -> None:
        self._changed.set()
        self._observe_now.set()

    def _step(self) -> None:
        """Reconcile subscriptions, followers and the state file with the latest view."""
        self._threads.raise_failure()
        view = self._view
        if view is not None:
            if self._membership.is_joining or self._may_join():
                self._membership.subscribe(
                    (topic for topic in set(self._source_topics.values()) if topic in view.topics),
                    before={model.source_topic for model in self._previous.models.values() if model.owners},
                )
            self._versions.step(view)
            for follower in self._versions.running.values():
                follower.observe_ends(view.ends_of(follower.reference.changelog_topic), view.ends_read_at)
        state = build_state(
            self._previous,
            view,
            self._source_topics,
            self._owned(),
            self._versions.running,
            self._settings.node.standby_replicas,
            self._placements,
        )
        state = with_standstill(state, self._still_since)
        for (model, number), follower in self._versions.running.items():
            follower.set_target(target_partitions(state, model, number))
        self._publish(
            replace(
                state,
                is_kafka_reachable=not self._waiting_for,
                waiting_for=self._waiting_for,
                keys_missing="" if self._keys is None else self._keys.waiting_for,
            ).written(Moment.now())
        )

    def _may_join(self) -> bool:
        """Whether the group has no member with this node's name at another address.

        The group keeps the URL of a member that joins again under its name: a node that restarts at another address must wait until the
        session of its previous process has ended. Raises FencedError when it does not end.
        """
        node = self._settings.node
        try:
            url = self._observer.url_under(node.name)
        except KafkaUnavailableError as error:
            log.warning("waiting for Kafka: %s", error)
            return False
        if url in {None, self._settings.advertised_url}:
            return True
        now_s = time.monotonic()
        if self._taken_since_s is None:
            self._taken_since_s = now_s
            log.info("waiting until the session of this node's previous process at %s has ended", url)
        if now_s - self._taken_since_s > 2 * node.session_timeout_s:
            raise FencedError(
                f"Another node has the name {node.name}, at {url}. Hint: give each node its own FOLDLAKE_NODE_NAME."
            )
        return False

    def _publish(self, state: NodeState) -> None:
        try:
            node_state.write(self._settings.store_dir, state)
        except OSError as error:
            # The workers continue with the last state, and report that the node is not ready when it is too old.
            log.warning("cannot publish the node's state in %s: %s", self._settings.store_dir, error)
        else:
            self._published = state
            self._versions.state_published()

    def _owned(self) -> frozenset[tuple[str, int]] | None:
        return self._membership.assigned if self._membership.has_joined else None

    def _start_follower(self, reference: VersionReference) -> VersionFollower:
        follower = VersionFollower(
            self._settings,
            reference,
            self._directory,
            previously_ready={
                p: state.confirmed
                for p, state in self._previous_partitions(reference).items()
                if state.is_ready
            },
            on_change=self._changed.set,
            on_stored=None
            if self._fold_traces is None
            else partial(self._fold_traces.stored, (reference.model, reference.number)),
        )
        follower.start()
        return follower

    def _traces_of_folds(self) -> "FoldTraces":
        # The library costs memory, and tracing is rarely on.
        from query_api.traces.fold_traces import FoldTraces  # noqa: PLC0415

        return FoldTraces.of_node(self._settings, lambda: self._published)

    def _forget(self, key: Key) -> None:
        self._previous = self._previous.without_partitions(key)

    def _previous_partitions(self, reference: VersionReference) -> dict[int, PartitionState]:
        model = self._previous.models.get(reference.model)
        version = None if model is None else model.versions.get(reference.number)
        return {} if version is None else version.partitions
