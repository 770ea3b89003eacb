"""When a version that has become live may take over an emission's consumers' topic from one that folds another source topic.

Until then, it emits to its own topic. What consumers have received must be among what it has emitted there: only then can be told which of
its records they lack.
"""

import logging

from include.declarations.emission import Emission
from include.kafka.ends.record_ends import unread_ends
from include.kafka.log_reading import end_offsets
from include.kafka.topics import partition_count
from include.position import Offsets
from include.stream.checkpoints import emission_query_name
from include.versions.version_lock import VersionLockedError, emission_lock
from include.versions.version_record import Version
from spark_jobs.routing.topic_switch import TopicSwitch
from spark_jobs.runtime.checkpoint import committed_offsets
from spark_jobs.streaming.outputs.published_topic import CONSUMERS, PublishedTopic
from spark_jobs.streaming.query_spec import StartPostponedError
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)

RETRY_S = 1.0
# Checkpoint of an emission's version -> what is known of its take-over, in this process.
_coverages: dict[str, "TakeoverCheck"] = {}


class TakeoverCheck:
    """Whether a live version has emitted everything that consumers have. Each step is fixed once the one before is done, so that it ends under load.

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
        self._is_complete = False
        self._before = ""
        self._routed: dict[str, Offsets] = {}
        self._source_ends: dict[str, Offsets] | None = None
        self._ends: Offsets | None = None
        self._change: TopicSwitch | None = None

    @property
    def live_since(self) -> str:
        """The time at which the version became live."""
        return self._version.live_since

    def is_complete(self) -> bool:
        """Return whether the version may take over; checks further unless it may. A failure is logged, and means no."""
        if not self._is_complete:
            try:
                self._is_complete = self._advance()
            except VersionLockedError:
                self._forget()  # the version before still writes
            except Exception as error:  # noqa: BLE001 - Kafka or a file system is unavailable: the other queries must continue
                LOG.warning("%s is not handed over yet: %s", self._emission.output_topic, error)
        return self._is_complete

    def change_from(self, before: str) -> TopicSwitch:
        """Return the handover from a version that folds this topic; raises StartPostponedError if it has to be prepared first."""
        if self._change is None or self._change.before != before:
            self._forget()
            raise StartPostponedError(RETRY_S)
        return self._change

    def _forget(self) -> None:
        self._is_complete = False
        self._source_ends = self._ends = self._change = None

    def _advance(self) -> bool:
        if self._source_ends is None:
            before = self._consumers.writer(self._source_topic).next_source_topic
            if before == self._source_topic:
                return True
            # Nobody writes to the consumers' topic from now on.
            with emission_lock(self._context.settings.home, self._emission.name, CONSUMERS, wait_s=0):
                self._before = self._consumers.writer(self._source_topic).next_source_topic
                self._routed = self._routed_offsets(self._before)
                self._source_ends = self._ends_of_sources()
            LOG.info(
                "v%d takes %s over as soon as it has emitted the events up to %s",
                self._version.number,
                self._emission.output_topic,
                self._source_ends,
            )
        if self._ends is None:
            routed = self._routed_offsets(self._source_topic)
            if not all(routed[topic].covers(ends) for topic, ends in self._source_ends.items()):
                return False
            self._ends = self._ends_of(self._source_topic)
        # A commit means that what was emitted below is in the topic.
        name = emission_query_name(self._emission.name, self._version.number)
        checkpoint = f"{self._context.settings.checkpoints}/{name}"
        if not committed_offsets(self._context.spark, checkpoint, self._source_topic).covers(self._ends):
            return False
        self._change = TopicSwitch(
            self._version.number,
            self._version.live_since,
            self._before,
            self._source_topic,
            self._routed,
            self._ends,
        )
        return True

    def _ends_of_sources(self) -> dict[str, Offsets]:
        routes = self._context.catalog.routes_to(self._source_topic)
        return {route.source_topic: self._ends_of(route.source_topic) for route in routes}

    def _ends_of(self, topic: str) -> Offsets:
        """Return where the records of a topic end: a commit need not be beyond the markers of transactions after them."""
        partitions = partition_count(self._context.admin, topic) or 0
        ends = Offsets.of_ends(end_offsets(self._context.consumer, topic, partitions))
        return unread_ends(self._context.consumer, topic, ends, Offsets())

    def _routed_offsets(self, topic: str) -> dict[str, Offsets]:
        """Return for each source of the routes to a topic what all of them have committed: its outputs are in the topic."""
        routed: dict[str, Offsets] = {}
        for route in self._context.catalog.routes_to(topic):
            checkpoint = f"{self._context.settings.checkpoints}/{route.query_name}"
            read = committed_offsets(self._context.spark, checkpoint, route.source_topic)
            other = routed.get(route.source_topic, read)
            routed[route.source_topic] = Offsets({p: min(n, other.of(p)) for p, n in read.items()})
        return routed


def takeover_check(
    context: StreamContext, emission: Emission, version: Version, source_topic: str
) -> TakeoverCheck:
    """Return what this process knows of a live version's take-over of the consumers' topic."""
    name = emission_query_name(emission.name, version.number)
    checkpoint = f"{context.settings.checkpoints}/{name}"
    known = _coverages.get(checkpoint)
    if known is None or known.live_since != version.live_since:
        known = _coverages[checkpoint] = TakeoverCheck(context, emission, version, source_topic)
    return known
