"""How far running rebuilds are: each running stage publishes its progress to Kafka, where every node and command can read it."""

from dataclasses import asdict, dataclass

from confluent_kafka import KafkaException

from include.errors import KafkaUnavailableError
from include.kafka.compacted_topics import Report, ReportPublisher, ReportTopic
from include.kafka.topics import COMPACTED, Topic, admin_client, ensure_topics
from include.settings import KafkaConnection
from include.versions.registry import VersionRegistry
from include.work_progress import Progress

TOPIC = Topic(
    "rebuild-progress",
    1,
    # What nobody reads any more is removed: the reports of a day, at most.
    COMPACTED | {"cleanup.policy": "compact,delete", "retention.ms": str(24 * 3600 * 1000)},
)
REPORTS = ReportTopic(TOPIC.name)


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


class StageReporter:
    """Publishes the progress of one stage, without ever waiting for a broker. Call it with the progress."""

    def __init__(
        self, kafka: KafkaConnection, replication_factor: int, read_model: str, number: int, stage: str
    ) -> None:
        self._names = {"read_model": read_model, "version": number, "stage": stage}
        self._key = f"{read_model}.v{number}.{stage}"
        self._publisher: ReportPublisher | None = None
        try:
            ensure_topics(admin_client(kafka), [TOPIC], replication_factor)
            self._publisher = ReportPublisher(kafka, REPORTS)
        except (KafkaUnavailableError, KafkaException):
            # The stage itself says so, if it needs Kafka.
            return

    def __call__(self, progress: Progress) -> None:
        """Publish the progress."""
        if self._publisher is not None:
            self._publisher.publish(self._key, self._names | asdict(progress))

    def waits(self) -> None:
        """Publish that the stage runs, and counts nothing."""
        self(Progress(0, None, ""))


def running_rebuilds(kafka: KafkaConnection) -> tuple[StageProgress, ...]:
    """Return the running stages of each rebuild that has not ended, in the order of read models and versions.

    Raises KafkaUnavailableError.
    """
    with VersionRegistry(kafka) as registry:
        records = registry.read()
    unfinished = {name: version for name, record in records.items() if (version := record.unfinished)}
    reports = _newest_reports(kafka) if unfinished else []
    found: list[StageProgress] = []
    for name, version in sorted(unfinished.items()):
        own = [report for report in reports if (report.read_model, report.version) == (name, version.number)]
        found += sorted(own, key=lambda report: report.stage) or [
            StageProgress(name, version.number, str(version.stage))
        ]
    return tuple(found)


def _newest_reports(kafka: KafkaConnection) -> list[StageProgress]:
    # A stage whose report is old has ended, or waits.
    return [_stage(report) for report in REPORTS.read(kafka) if report.is_fresh]


def _stage(report: Report) -> StageProgress:
    fields = report.fields
    counts = bool(fields["unit"])
    return StageProgress(
        read_model=fields["read_model"],
        version=fields["version"],
        stage=fields["stage"],
        done=fields["done"] if counts else None,
        total=fields["total"],
        unit=fields["unit"],
        rate_per_s=fields["rate_per_s"],
        seconds_left=fields["seconds_left"],
        age_s=report.age_s,
    )
