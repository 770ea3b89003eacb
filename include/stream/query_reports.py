"""The stream driver's reports on its queries, which it publishes to Kafka every two seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.kafka.compacted.report_topic import FRESH_S, Report, ReportTopic
from include.kafka.topics import PROGRESS_TOPIC

QUERY_REPORTS = ReportTopic(PROGRESS_TOPIC)


@dataclass(frozen=True)
class QueryStatus:
    """The driver's last report on one query.

    failing_for_s: how long it has failed again and again or been refused; 0 once it runs steadily.
    task_slots: those that it occupies in real time; 0 if it always runs in batches, on slots that all such queries share.
    """

    query: str
    phase: str
    restarts: int
    last_error: str
    driver_pid: int
    master: str
    reported_age_s: float
    last_batch: dict[str, Any]
    failing_for_s: float = 0.0
    task_slots: int = 0

    @property
    def is_fresh(self) -> bool:
        """Whether the driver that reported this still reports."""
        return self.reported_age_s < FRESH_S


def read_queries(bootstrap_servers: str) -> tuple[QueryStatus, ...]:
    """Return the driver's last report on each query, regardless of its age; raises KafkaUnavailableError."""
    return tuple(map(_status, QUERY_REPORTS.read(bootstrap_servers)))


def newest_reports(admin: AdminClient, consumer: Consumer) -> Iterator[QueryStatus]:
    """Yield the driver's last report on each query, regardless of its age; raises KafkaUnavailableError."""
    yield from map(_status, QUERY_REPORTS.newest(admin, consumer))


def _status(report: Report) -> QueryStatus:
    fields = report.fields
    return QueryStatus(
        query=fields["query"],
        phase=fields["phase"],
        restarts=fields["restarts"],
        last_error=fields["last_error"],
        driver_pid=fields["driver_pid"],
        master=fields["master"],
        reported_age_s=report.age_s,
        last_batch=fields["last_batch"],
        # A driver of an earlier release does not report these.
        failing_for_s=fields.get("failing_for_s", 0.0),
        task_slots=fields.get("task_slots", 0),
    )
