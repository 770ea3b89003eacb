"""The stream driver's reports on its queries, which it publishes to Kafka every two seconds."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.boot_clock import UNKNOWN_BOOT, boot_id, boot_s
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import PROGRESS_TOPIC, admin_client, partition_count

# Enough to include the newest report on each query.
TAIL_REPORTS = 300
# The driver reports every 2 s; if its report is older than this, the driver is considered stopped.
FRESH_S = 15.0


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
    consumer = log_consumer(bootstrap_servers)
    try:
        return tuple(newest_reports(admin_client(bootstrap_servers), consumer))
    finally:
        consumer.close()


def newest_reports(admin: AdminClient, consumer: Consumer) -> Iterator[QueryStatus]:
    """Yield the driver's last report on each query, regardless of its age; raises KafkaUnavailableError."""
    if partition_count(admin, PROGRESS_TOPIC) is None:
        return
    newest: dict[bytes, dict[str, Any]] = {}
    for message in read_tail(consumer, PROGRESS_TOPIC, 0, records=TAIL_REPORTS):
        key, value = message.key(), message.value()
        if isinstance(key, bytes) and value is not None:
            newest[key] = json.loads(value)
    for report in newest.values():
        yield QueryStatus(
            query=report["query"],
            phase=report["phase"],
            restarts=report["restarts"],
            last_error=report["last_error"],
            driver_pid=report["driver_pid"],
            master=report["master"],
            reported_age_s=report_age_s(report),
            last_batch=report["last_batch"],
            # A driver of an earlier release does not report these.
            failing_for_s=report.get("failing_for_s", 0.0),
            task_slots=report.get("task_slots", 0),
        )


def report_age_s(report: dict[str, Any]) -> float:
    """Return the seconds since a report; by the clocks of both machines if the driver runs on another one."""
    if report.get("boot_id") == boot_id() != UNKNOWN_BOOT:
        return boot_s() - float(report["at_boot_s"])
    return (datetime.now(UTC) - datetime.fromisoformat(report["at"])).total_seconds()
