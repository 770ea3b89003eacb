"""How far running rebuilds are: each running stage publishes its progress to Kafka, where every node and command can read it."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import KafkaException, Producer

from include.boot_clock import boot_id, boot_s
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import COMPACTED, Topic, admin_client, ensure_topics, partition_count
from include.stream.query_reports import report_age_s
from include.versions.registry import VersionRegistry
from include.work_progress import Progress

TOPIC = Topic(
    "rebuild-progress",
    1,
    # What nobody reads any more is removed: the reports of a day, at most.
    COMPACTED | {"cleanup.policy": "compact,delete", "retention.ms": str(24 * 3600 * 1000)},
)
# Enough to include the newest report of each running stage: a stage reports every two seconds.
TAIL_REPORTS = 300
# A stage whose report is older has ended, or waits.
FRESH_S = 15.0


@dataclass(frozen=True)
class StageProgress:
    """A running stage of a rebuild, or a rebuild that waits.

    stage: the stage's name in the plan; `building` or `candidate` if no stage reports, for example while it waits for approval or a slot.
    done, total: in `unit`; None if the stage counts nothing, `total` also if it is unknown.
    rate_per_s: of the last half minute. seconds_left: None while that cannot be told.
    age_s: of the report; None without one.
    """

    read_model: str
    version: int
    stage: str
    done: int | None = None
    total: int | None = None
    unit: str = ""
    rate_per_s: float = 0.0
    seconds_left: float | None = None
    age_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


class StageReporter:
    """Publishes the progress of one stage, without ever waiting for a broker. Call it with the progress."""

    def __init__(
        self, bootstrap_servers: str, replication_factor: int, read_model: str, number: int, stage: str
    ) -> None:
        self._names = {"read_model": read_model, "version": number, "stage": stage}
        self._key = f"{read_model}.v{number}.{stage}".encode()
        self._producer: Producer | None = None
        try:
            ensure_topics(admin_client(bootstrap_servers), [TOPIC], replication_factor)
            self._producer = Producer(
                {
                    "bootstrap.servers": bootstrap_servers,
                    "message.timeout.ms": 5000,
                    "linger.ms": 0,
                    "log_level": 0,
                }
            )
        except (KafkaUnavailableError, KafkaException):
            # The stage itself says so, if it needs Kafka.
            return

    def __call__(self, progress: Progress) -> None:
        """Publish the progress."""
        if self._producer is None:
            return
        clock = {"at": datetime.now(UTC).isoformat(), "boot_id": boot_id(), "at_boot_s": boot_s()}
        value = json.dumps(self._names | asdict(progress) | clock).encode()
        try:
            self._producer.produce(TOPIC.name, key=self._key, value=value)
            self._producer.poll(0)
        except BufferError:
            return

    def waits(self) -> None:
        """Publish that the stage runs, and counts nothing."""
        self(Progress(0, None, ""))


def running_rebuilds(bootstrap_servers: str) -> tuple[StageProgress, ...]:
    """Return the running stages of each rebuild that has not ended, in the order of read models and versions.

    Raises KafkaUnavailableError.
    """
    with VersionRegistry(bootstrap_servers) as registry:
        records = registry.read()
    unfinished = {name: version for name, record in records.items() if (version := record.unfinished)}
    reports = _newest_reports(bootstrap_servers) if unfinished else []
    found: list[StageProgress] = []
    for name, version in sorted(unfinished.items()):
        own = [report for report in reports if (report.read_model, report.version) == (name, version.number)]
        found += sorted(own, key=lambda report: report.stage) or [
            StageProgress(name, version.number, str(version.stage))
        ]
    return tuple(found)


def _newest_reports(bootstrap_servers: str) -> list[StageProgress]:
    if partition_count(admin_client(bootstrap_servers), TOPIC.name) is None:
        return []
    consumer = log_consumer(bootstrap_servers)
    try:
        newest = {
            message.key(): json.loads(message.value() or b"null")
            for message in read_tail(consumer, TOPIC.name, 0, records=TAIL_REPORTS)
        }
    finally:
        consumer.close()
    return [
        _stage(report, age_s)
        for report in newest.values()
        if report is not None and (age_s := report_age_s(report)) < FRESH_S
    ]


def _stage(report: dict[str, Any], age_s: float) -> StageProgress:
    counts = bool(report["unit"])
    return StageProgress(
        read_model=report["read_model"],
        version=report["version"],
        stage=report["stage"],
        done=report["done"] if counts else None,
        total=report["total"],
        unit=report["unit"],
        rate_per_s=report["rate_per_s"],
        seconds_left=report["seconds_left"],
        age_s=age_s,
    )
