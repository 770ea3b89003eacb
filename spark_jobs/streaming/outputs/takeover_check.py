"""When a version that has become live may take over an emission's consumers' topic from one that folds another source topic.

Until then, it emits to its own topic. What consumers have received must be among what it has emitted there: only then can be told which of
its records they lack.
"""

import logging

from include.declarations.kinds.emission import Emission
from include.kafka.log_reading import end_offsets
from include.kafka.record_ends import unread_ends
from include.kafka.topics import partition_count
from include.position import Offsets
from include.stream.checkpoints import emission_query_name
from include.versions.version_lock import VersionLockedError, emission_lock
from include.versions.version_record import Version
from spark_jobs.routing.topic_switch import TakeoverState, TopicSwitch
from spark_jobs.runtime.checkpoint import committed_offsets
from spark_jobs.streaming.outputs.published_topic import CONSUMERS, PublishedTopic
from spark_jobs.streaming.query_spec import StartPostponedError
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)

RETRY_S = 1.0


class TakeoverCheck:
    """Whether a live version has emitted everything that consumers have. The context keeps how far the check is, so that it ends under load.

    source_topic: the topic that the version folds.
    """

    def __init__(
        self, context: StreamContext, emission: Emission, version: Version, source_topic: str
    ) -> None:
        self._context = context
        self._emission = emission
        self._version = version
        self._source_topic = source_topic
        self._consumers = PublishedTopic(context, emission)
        self._checkpoint = (
            f"{context.settings.checkpoints}/{emission_query_name(emission.name, version.number)}"
        )
        known = context.takeovers.get(self._checkpoint)
        if known is None or known.live_since != version.live_since:
            known = context.takeovers[self._checkpoint] = TakeoverState(version.live_since)
        self._state = known

    def is_complete(self) -> bool:
        """Return whether the version may take over; checks further unless it may. A failure is logged, and means no."""
        if not self._state.is_complete:
            try:
                self._state.is_complete = self._advance()
            except VersionLockedError:
                self._state.forget()  # the version before still writes
            except Exception as error:  # noqa: BLE001 - Kafka or a file system is unavailable: the other queries must continue
                LOG.warning("%s is not handed over yet: %s", self._emission.output_topic, error)
        return self._state.is_complete

    def change_from(self, before: str) -> TopicSwitch:
        """Return the handover from a version that folds this topic; raises StartPostponedError if it has to be prepared first."""
        if self._state.switch is None or self._state.switch.before != before:
            self._state.forget()
            raise StartPostponedError(RETRY_S)
        return self._state.switch

    def _advance(self) -> bool:
        if self._state.source_ends is None:
            before = self._consumers.writer(self._source_topic).next_source_topic
            if before == self._source_topic:
                return True
            # Nobody writes to the consumers' topic from now on.
            with emission_lock(self._context.settings.home, self._emission.name, CONSUMERS, wait_s=0):
                self._state.before = self._consumers.writer(self._source_topic).next_source_topic
                self._state.routed = self._routed_offsets(self._state.before)
                self._state.source_ends = self._ends_of_sources()
            LOG.info(
                "v%d takes %s over as soon as it has emitted the events up to %s",
                self._version.number,
                self._emission.output_topic,
                self._state.source_ends,
            )
        if self._state.ends is None:
            routed = self._routed_offsets(self._source_topic)
            if not all(routed[topic].covers(ends) for topic, ends in self._state.source_ends.items()):
                return False
            self._state.ends = self._ends_of(self._source_topic)
        # A commit means that what was emitted below is in the topic.
        if not committed_offsets(self._context.spark, self._checkpoint, self._source_topic).covers(
            self._state.ends
        ):
            return False
        self._state.switch = TopicSwitch(
            self._version.number,
            self._version.live_since,
            self._state.before,
            self._source_topic,
            self._state.routed,
            self._state.ends,
        )
        return True

    def _ends_of_sources(self) -> dict[str, Offsets]:
        routes = self._context.catalog.flows_to(self._source_topic)
        return {route.source_topic: self._ends_of(route.source_topic) for route in routes}

    def _ends_of(self, topic: str) -> Offsets:
        """Return where the records of a topic end: a commit need not be beyond the markers of transactions after them."""
        partitions = partition_count(self._context.admin, topic) or 0
        ends = Offsets.of_ends(end_offsets(self._context.consumer, topic, partitions))
        return unread_ends(self._context.consumer, topic, ends, Offsets())

    def _routed_offsets(self, topic: str) -> dict[str, Offsets]:
        """Return for each source of the routes to a topic what all of them have committed: its outputs are in the topic."""
        routed: dict[str, Offsets] = {}
        for route in self._context.catalog.flows_to(topic):
            checkpoint = f"{self._context.settings.checkpoints}/{route.query_name}"
            read = committed_offsets(self._context.spark, checkpoint, route.source_topic)
            other = routed.get(route.source_topic, read)
            routed[route.source_topic] = Offsets({p: min(n, other.of(p)) for p, n in read.items()})
        return routed
