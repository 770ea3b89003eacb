"""The stream driver's reports on its queries and their phases, which it publishes to Kafka every two seconds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from confluent_kafka import Consumer

from include.kafka.compacted_topics import FRESH_S, Report, ReportTopic
from include.kafka.topics import PROGRESS_TOPIC
from include.settings import KafkaConnection
from include.stream.checkpoints import query_name
from include.unknown_fields import ignore_unknown_fields

QUERY_REPORTS = ReportTopic(PROGRESS_TOPIC)


class Phase(StrEnum):
    """The phase of a query."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    REAL_TIME = "real time"
    BATCHES = "batches"  # keeps up, in batches of about a second: there were more events than it could fold in real time
    WAITING = "waiting for events"  # has committed everything; no query of Spark runs until the source has new events
    FAILED = "failed"  # waiting for the next attempt to start
    REFUSED = "refused"  # must not start for now; the last error is the reason
    STOPPED = "stopped"


# The query folds events as they arrive.
CONTINUOUS = frozenset({Phase.REAL_TIME, Phase.BATCHES, Phase.WAITING})
# The query folds events.
FOLDING = CONTINUOUS | {Phase.CATCHING_UP}


@dataclass(frozen=True)
class BatchProgress:
    """The last finished batch of a query, as Spark reports it; `end_offsets` is by source partition.

    dropped_events: by all batches since the driver started: events whose state Spark had forgotten already.
    finished_at: ISO time; empty before the first batch.
    """

    batch_id: int = -1
    input_rows: int = 0
    input_rows_per_s: float = 0.0
    processed_rows_per_s: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    dropped_events: int = 0
    end_offsets: dict[str, int] = field(default_factory=dict)
    finished_at: str = ""


@dataclass(frozen=True)
class QueryReport:
    """The driver's last report on one query.

    source_topic: that it reads; empty if an earlier release reports it.
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
    last_batch: BatchProgress = field(default_factory=BatchProgress)
    failing_for_s: float = 0.0
    task_slots: int = 0
    source_topic: str = ""

    @property
    def is_fresh(self) -> bool:
        """Whether the driver that reported this still reports."""
        return self.reported_age_s < FRESH_S

    @property
    def is_running(self) -> bool:
        """Whether a running driver has the query and has not stopped it."""
        return self.is_fresh and self.phase != Phase.STOPPED


def read_queries(kafka: KafkaConnection) -> tuple[QueryReport, ...]:
    """Return the driver's last report on each query, regardless of its age; raises KafkaUnavailableError."""
    return tuple(map(_query_report, QUERY_REPORTS.read(kafka)))


def newest_reports(consumer: Consumer) -> Iterator[QueryReport]:
    """Yield the driver's last report on each query, regardless of its age; raises KafkaUnavailableError."""
    yield from map(_query_report, QUERY_REPORTS.newest(consumer))


def _query_report(report: Report) -> QueryReport:
    # A driver of an earlier release does not report every field.
    fields = ignore_unknown_fields(QueryReport, report.fields)
    last_batch = BatchProgress(**ignore_unknown_fields(BatchProgress, report.fields["last_batch"]))
    return QueryReport(**{**fields, "reported_age_s": report.age_s, "last_batch": last_batch})


def query_status(kafka: KafkaConnection, read_model: str, number: int) -> QueryReport | None:
    """Return the status of a version's query that a running driver reported last, or None when it reports none.

    Raises KafkaUnavailableError when no broker responds.
    """
    name = query_name(read_model, number)
    queries = read_queries(kafka)
    return next((query for query in queries if query.query == name and query.is_fresh), None)


def describe_query(query: QueryReport | None) -> str:
    """Return the status of a version's query as a clause."""
    if query is None:
        return "the stream driver reports no query for it (is the driver running?)"
    return f"its query is {query.phase}" + (f" ({query.last_error})" if query.last_error else "")
