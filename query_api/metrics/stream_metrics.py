"""Metrics of the stream as a whole, for Prometheus: measured on its topics, so they are the same on every node."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from include.stream.status import StreamStatus

VERSION_LABELS = ["read_model", "version", "stage"]
QUERY_LABELS = ["query", "phase"]
OUTPUT_LABELS = ["kind", "name", "version", "stage"]


class _StreamCollector(Collector):
    def __init__(self, status: StreamStatus) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily(
            "foldlake_stream_up", "1 while the stream driver is running.", labels=["state"]
        )
        up.add_metric([self._status.state], float(self._status.driver_pid is not None))
        yield up
        yield from self._of_versions()
        yield from self._of_topics()
        yield from self._of_outputs()
        yield from self._of_queries()

    def _of_versions(self) -> Iterable[Metric]:
        behind = GaugeMetricFamily(
            "foldlake_stream_events_behind", "Source events not yet in the changelog.", labels=VERSION_LABELS
        )
        age = GaugeMetricFamily(
            "foldlake_stream_newest_event_age_seconds",
            "Time since the newest event was appended to the source topic.",
            labels=VERSION_LABELS,
        )
        still = GaugeMetricFamily(
            "foldlake_stream_standing_still_seconds",
            "Time for which events have waited and none was folded; 0 while the folds keep up.",
            labels=VERSION_LABELS,
        )
        events = GaugeMetricFamily(
            "foldlake_stream_events",
            "Source events of the version, folded or not, since its start.",
            labels=VERSION_LABELS,
        )
        ahead = GaugeMetricFamily(
            "foldlake_stream_event_time_ahead_seconds",
            "How far an event time among the newest state records is ahead of the time at which its event was appended; 0 if none is.",
            labels=VERSION_LABELS,
        )
        for version in self._status.versions:
            labels = [version.read_model, str(version.version), version.stage]
            events.add_metric(labels, version.events)
            behind.add_metric(labels, version.events_behind)
            still.add_metric(labels, version.still_s or 0.0)
            ahead.add_metric(
                labels, 0.0 if version.event_time_ahead is None else version.event_time_ahead.ahead_s
            )
            if version.newest_event_age_s is not None:
                age.add_metric(labels, version.newest_event_age_s)
        yield from (events, behind, age, still, ahead)

    def _of_topics(self) -> Iterable[Metric]:
        letters = GaugeMetricFamily(
            "foldlake_stream_dead_letters", "Records on the dead-letter topic.", labels=["source_topic"]
        )
        stuck = GaugeMetricFamily(
            "foldlake_stream_dead_letters_stuck_seconds",
            "How long dead letters have not been written because their query fails; 0 while they are.",
            labels=["source_topic"],
        )
        stuck_for_s = {found.source_topic: found.stuck_for_s for found in self._status.stuck_dead_letters}
        for topic, count in self._status.dead_letters_of.items():
            letters.add_metric([topic], count)
            stuck.add_metric([topic], stuck_for_s.get(topic, 0.0))
        held = GaugeMetricFamily(
            "foldlake_stream_open_transaction_seconds",
            "How long a producer's transaction has been open, behind which events wait; 0 if none is open for long.",
            labels=["source_topic"],
        )
        open_s = {found.topic: found.open_s for found in self._status.open_transactions}
        for topic in self._status.dead_letters_of.keys() | open_s.keys():
            held.add_metric([topic], open_s.get(topic, 0.0))
        yield from (letters, stuck, held)

    def _of_outputs(self) -> Iterable[Metric]:
        events = GaugeMetricFamily(
            "foldlake_stream_output_events",
            "Source events of the route or emission, read or not.",
            labels=OUTPUT_LABELS,
        )
        behind = GaugeMetricFamily(
            "foldlake_stream_output_events_behind",
            "Source events that the route or emission has not read yet.",
            labels=OUTPUT_LABELS,
        )
        stages = {(v.read_model, v.version): v.stage for v in self._status.versions}
        for route in self._status.routes:
            labels = ["route", route.route, "", "live"]
            events.add_metric(labels, route.events)
            behind.add_metric(labels, route.events_behind)
        for emission in self._status.emissions:
            stage = stages.get((emission.read_model, emission.version), "")
            labels = ["emission", emission.emission, str(emission.version), stage]
            events.add_metric(labels, emission.events)
            behind.add_metric(labels, emission.events_behind)
        yield from (events, behind)

    def _of_queries(self) -> Iterable[Metric]:
        rate = GaugeMetricFamily(
            "foldlake_stream_processed_rows_per_second",
            "Rows processed per second in the last completed batch.",
            labels=QUERY_LABELS,
        )
        rows = GaugeMetricFamily(
            "foldlake_stream_state_rows", "Keys in the query's state.", labels=QUERY_LABELS
        )
        size = GaugeMetricFamily(
            "foldlake_stream_state_bytes", "Memory used by the query's state.", labels=QUERY_LABELS
        )
        restarts = GaugeMetricFamily(
            "foldlake_stream_query_restarts",
            "Restarts of the query since the driver started.",
            labels=QUERY_LABELS,
        )
        failing = GaugeMetricFamily(
            "foldlake_stream_query_failing_seconds",
            "How long the query has failed again and again or been refused; 0 once it runs steadily.",
            labels=["query"],
        )
        dropped = GaugeMetricFamily(
            "foldlake_stream_dropped_events",
            "Events not folded because their state was forgotten, since the driver started.",
            labels=QUERY_LABELS,
        )
        for query in self._status.queries:
            labels = [query.query, query.phase]
            dropped.add_metric(labels, query.last_batch.get("dropped_events", 0))
            rate.add_metric(labels, query.last_batch.get("processed_rows_per_s", 0.0))
            rows.add_metric(labels, query.last_batch.get("state_rows", 0))
            size.add_metric(labels, query.last_batch.get("state_bytes", 0))
            restarts.add_metric(labels, query.restarts)
            failing.add_metric([query.query], query.failing_for_s)
        yield from (rate, rows, size, restarts, failing, dropped)


def stream_exposition(status: StreamStatus) -> bytes:
    """Return the stream's metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_StreamCollector(status))
    return generate_latest(registry)
