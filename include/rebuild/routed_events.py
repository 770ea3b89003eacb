"""What a version must contain before it replaces one that folds another version of its source topic.

Offsets of two versions of a topic cannot be compared. What can be are the events of which the routes made both: the version must contain
whatever its routes make of all events that their sources had at one moment.
"""

import time
from collections.abc import Mapping
from typing import Self

from include.declarations.catalog import Catalog
from include.errors import FoldlakeError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.origins import WrittenRecords
from include.kafka.record_ends import unread_ends
from include.kafka.topics import admin_client, partition_count
from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from include.rebuild.errors import StageTimeoutError
from include.settings import KafkaConnection
from include.stream.folded_offsets import folded_offsets, read_offsets, written_offsets
from include.stream.query_reports import query_status, read_queries
from include.versions.version_record import Version
from include.waiting import wait_for
from include.words import plural
from include.work_progress import WorkProgress


class NoRouteError(FoldlakeError):
    """No route writes the topic that a version folds."""


class RoutedTopic:
    """A version of a topic, compared with what its routes' sources contain when this is created. A context manager."""

    def __init__(self, kafka: KafkaConnection, catalog: Catalog, topic: str) -> None:
        """Read the ends of the sources; raises KafkaUnavailableError, and NoRouteError if nothing writes the topic any more."""
        self._kafka = kafka
        self._admin = admin_client(self._kafka)
        self._consumer = log_consumer(self._kafka)
        self._catalog = catalog
        self.topic = topic
        self._routes = self._catalog.flows_to(topic)
        if not self._routes:
            self._consumer.close()
            raise NoRouteError(
                f"No route writes {topic}, so that it does not get new events: put the declaration of the route back, and run ./foldlake up."
            )
        self._source_ends = {route.source_topic: self.ends_of(route.source_topic) for route in self._routes}

    def __enter__(self) -> Self:
        """Return the topic."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    @property
    def total(self) -> int:
        """The number of events in the sources of its routes, each source once."""
        return sum(sum(ends.values()) for ends in self._source_ends.values())

    def lacking(self) -> dict[str, int]:
        """Return for the query of each route that has not read its whole source how many events it lacks, as far as can be seen."""
        reports = {query.query: query for query in read_queries(self._kafka)}
        lacking = {}
        for route in self._routes:
            source, output = route.source_topic, route.output_topic
            read = read_offsets(self._admin, self._consumer, source, reports.get(route.query_name))
            partitions = partition_count(self._admin, output) or 0
            records = WrittenRecords(route.name, source)
            read = read.merge(written_offsets(self._consumer, output, partitions, records))
            events = read.events_until(self._source_ends[source])
            if events:
                lacking[route.query_name] = events
        return lacking

    def ends_of(self, topic: str) -> Offsets:
        """Return where the records of each partition of a topic end; empty if it does not exist. Raises KafkaUnavailableError."""
        partitions = partition_count(self._admin, topic) or 0
        ends = Offsets.of_ends(end_offsets(self._consumer, topic, partitions))
        return unread_ends(self._consumer, topic, ends, Offsets())

    def folded(self, read_model: str, version: Version) -> Offsets:
        """Return how far a version of a read model has folded the topic."""
        model = self._catalog.models[read_model]
        query = query_status(self._kafka, read_model, version.number)
        partitions = partition_count(self._admin, version.changelog_topic) or 0
        schema = model.state_schema_of(version.fold_revision)
        read = read_offsets(self._admin, self._consumer, self.topic, query)
        return read.merge(folded_offsets(self._consumer, version.changelog_topic, partitions, schema))


class RoutedEvents:
    """The events that a version must contain on every node. Each step is fixed once the one before is done, so that it ends under load."""

    def __init__(
        self, kafka: KafkaConnection, catalog: Catalog, read_model: str, version: Version, topic: str
    ) -> None:
        self._read_model = read_model
        self._version = version
        self._topic = RoutedTopic(kafka, catalog, topic)
        self._topic_ends: Offsets | None = None
        self._changelog_ends: Offsets | None = None

    def close(self) -> None:
        """Close the connections."""
        self._topic.close()

    def lacking(self, nodes: Mapping[str, list[PartitionReport] | None]) -> tuple[str, ...]:
        """Return a line for each route, fold and node that lacks some of the events."""
        name = f"v{self._version.number}"
        if self._topic_ends is None:
            behind = self._topic.lacking()
            if behind:
                return tuple(f"{route} lacks {plural(events, 'event')}" for route, events in behind.items())
            self._topic_ends = self._topic.ends_of(self._topic.topic)
        if self._changelog_ends is None:
            folded = self._topic.folded(self._read_model, self._version)
            if not folded.covers(self._topic_ends):
                lacking = folded.events_until(self._topic_ends)
                return (f"the fold of {name} lacks {plural(lacking, 'event')} of {self._topic.topic}",)
            self._changelog_ends = self._topic.ends_of(self._version.changelog_topic)
        return tuple(
            f"{report.reported_by} partition {report.partition}: lacks records of {name} up to offset {end:,} of its changelog"
            for reports in nodes.values()
            for report in reports or ()
            if (report.read_model, report.version) == (self._read_model, self._version.number)
            and report.is_stored
            and (report.position or 0) < (end := self._changelog_ends.of(report.partition))
        )


POLL_INTERVAL_S = 1.0
# The driver starts its queries within this time, and restarts one that failed.
NO_QUERY_TIMEOUT_S = 120.0


def wait_for_routes(kafka: KafkaConnection, catalog: Catalog, topic: str, timeout_s: float) -> None:
    """Wait until each route to the topic has read all events that its source has now.

    Raises StageTimeoutError, also when the stream driver reports no query of a route; KafkaUnavailableError.
    """
    with RoutedTopic(kafka, catalog, topic) as routed:
        progress = WorkProgress(f"routes to {topic}", "events", routed.total)
        lacking: dict[str, int] = {}
        reported_s = time.monotonic()

        def have_read() -> bool:
            nonlocal lacking, reported_s
            lacking = routed.lacking()
            progress.reached(routed.total - sum(lacking.values()))
            queries = {query.query for query in read_queries(kafka) if query.is_fresh}
            missing = [name for name in lacking if name not in queries]
            if not missing:
                reported_s = time.monotonic()
            elif time.monotonic() - reported_s > NO_QUERY_TIMEOUT_S:
                raise StageTimeoutError(
                    f"The stream driver does not run {missing[0]}, which writes {topic}: run ./foldlake up after the declaration was "
                    "added; `./foldlake status` shows the query."
                )
            return not lacking

        if not wait_for(have_read, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S):
            behind = "; ".join(f"{name} lacks {plural(events, 'event')}" for name, events in lacking.items())
            raise StageTimeoutError(f"{topic} is not complete after {timeout_s:,.0f} s: {behind}.")
