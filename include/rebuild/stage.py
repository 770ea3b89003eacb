"""The parts of a plan's stage: its work, its description, and its retries. Imports no engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.transitions import UnknownVersionError
from include.versions.version_record import Version

SHORT = timedelta(minutes=10)
# The boxes of Airflow's graph.
BUILD, SERVE, PROMOTION = "build", "serve", "promotion"


class Slot(StrEnum):
    """A resource that stages share, named as its pool in Airflow. A stage that uses it waits for a free slot."""

    REBUILD = "rebuild"  # processor and memory for folding a whole log
    LAKE = "lake"  # lake/<model>: one writer at a time


class Engine(StrEnum):
    """Which of the two Spark versions runs a job."""

    STREAM = "stream"
    LAKE = "lake"


class Report(StrEnum):
    """The report that a job writes; its id is that of the run (`StageRun.report_id`)."""

    CHECK = "check"
    COMPARISON = "comparison"


def report_id(read_model: str, version: int) -> str:
    """Return the id of the check of a rebuild's version, and of its comparison with the live version."""
    return f"rebuild-{read_model}-v{version}"


@dataclass(frozen=True)
class StageRun:
    """The run of a plan, as one of its stages sees it.

    read_models: those that the stage works on. form: the form's fields, defaults included. sent: the fields as sent, which may include
    unknown ones. requested_at: when the run was requested. set_note: sets the text that Airflow shows with the run.
    result_of: returns the result of an earlier stage, by its name.
    """

    settings: Settings
    run_id: str
    read_models: tuple[str, ...]
    form: Mapping[str, Any]
    sent: Mapping[str, Any]
    requested_at: datetime
    set_note: Callable[[str], None]
    result_of: Callable[[str], Any]

    @property
    def read_model(self) -> str:
        """The read model of a stage that works on one."""
        (name,) = self.read_models
        return name

    @cached_property
    def versions(self) -> dict[str, Version]:
        """The versions that the run has registered, by read model, from the version registry. Raises UnknownVersionError."""
        with VersionRegistry(self.settings.kafka_connection) as registry:
            records = [record_of(registry, name) for name in self.read_models]
        versions = {}
        for record in records:
            version = record.of_run(self.run_id)
            if version is None:
                raise UnknownVersionError(f"The run {self.run_id} has no version of {record.read_model}.")
            versions[record.read_model] = version
        return versions

    @property
    def version(self) -> Version:
        """The version that a rebuild builds of its read model; only after its registration."""
        return self.versions[self.read_model]

    @property
    def report_id(self) -> str:
        """The id of the version's check and of its comparison."""
        return report_id(self.read_model, self.version.number)


@dataclass(frozen=True)
class Action:
    """Work in Python. Its return value, which must be JSON-serializable, is the stage's result.

    checks_request: whether it is the check of what the run was asked for: a request that is refused skips all stages instead of failing.
    """

    run: Callable[[StageRun], object]
    checks_request: bool = False


@dataclass(frozen=True)
class SparkJob:
    """A run of spark_jobs/<job>.py.

    arguments: returns those of its command line. report: the report that it writes, if any.
    changes_lake: whether the job replaces lake/<model>, so that a quality check must follow.
    """

    job: str
    engine: Engine
    arguments: Callable[[StageRun], Sequence[str]]
    report: Report | None = None
    changes_lake: bool = False


@dataclass(frozen=True)
class Question:
    """The text of an approval. body: in Markdown."""

    subject: str
    body: str


@dataclass(frozen=True)
class Approval:
    """Waits for approval if the form's field `approve` is true, or a threshold is exceeded; a rejection fails the run.

    exceeded: returns a sentence for each threshold of the form that is exceeded; they precede the question's body.
    """

    question: Callable[[StageRun], Question]
    exceeded: Callable[[StageRun], Sequence[str]]
    timeout: timedelta


Work = Action | SparkJob | Approval


@dataclass(frozen=True)
class PlanStage:
    """One stage: one task of the same name in Airflow. Idempotent: it may be killed and repeated at any point.

    description: what it does, without a full stop. on_failure: what a failure means, and what to do.
    leaves: what a killed try leaves behind. next_try: what the next try does.
    priority: which of the stages that wait for a slot starts first: the one with the largest priority.
    retries, timeout: how often a failed try is repeated; how long a try may take.
    group: the box in which Airflow's graph shows it together with the next ones of its group; empty for none.
    read_models: those that it works on; empty for the one in the run's form.
    """

    name: str
    work: Work
    description: str
    on_failure: str
    leaves: str = "nothing"
    next_try: str = "repeats it"
    retries: int = 3
    timeout: timedelta | None = SHORT
    slot: Slot | None = None
    priority: int = 1
    group: str = ""
    read_models: tuple[str, ...] = ()
