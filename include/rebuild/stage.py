"""What a stage of a plan is made of: its work, what it says of itself, and how it is retried. No engine is needed to read it.

Texts for a stage's work (arguments of a job, the question of an approval) are written as for `str.format`, with two fields:
`{form[reason]}` is a field of the form, `{results[promote]}` what an earlier stage returned, `{results[s][x]}` a part of that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from include.rebuild.request import RebuildRequest
from include.settings import Settings
from include.versions.version_record import ReadModelVersions

READ_MODEL = "{form[read_model]}"
# The version that a rebuild makes. A text with a stage's result can be used by the stages after it.
VERSION = "{results[register_candidate][version]}"
# The arguments by which a Spark job knows its version.
VERSION_ARGUMENTS = ("--read-model", READ_MODEL, "--version", VERSION)
SHORT = timedelta(minutes=10)


class Slot(StrEnum):
    """A resource that stages share, named as its pool in Airflow: who uses it waits for a free slot."""

    REBUILD = "rebuild"  # processor and memory for folding a whole log
    LAKE = "lake"  # lake/<model>: one writer at a time


class Engine(StrEnum):
    """Which of the two Spark versions runs a job."""

    STREAM = "stream"
    LAKE = "lake"


@dataclass(frozen=True)
class StageRun:
    """What a stage's action gets of the run that it belongs to.

    form: the form's fields, defaults included. sent: the fields as they were sent, where there may be unknown ones.
    results: what the stages before returned, by the stage's name. requested_at: when the run was requested.
    set_note: sets the text that is shown with the run.
    """

    settings: Settings
    run_id: str
    form: Mapping[str, Any]
    sent: Mapping[str, Any]
    results: Mapping[str, Any]
    requested_at: datetime
    set_note: Callable[[str], None]

    @property
    def read_model(self) -> str:
        """The read model's name."""
        return self.text(READ_MODEL)

    @property
    def version(self) -> int:
        """The version that a rebuild makes; only after `register_candidate`."""
        return int(self.text(VERSION))

    def text(self, template: str) -> str:
        """Fill in a stage's text."""
        return template.format(form=self.form, results=self.results)


@dataclass(frozen=True)
class Action:
    """Work that is done in Python; what it returns is the stage's result, as JSON has it."""

    run: Callable[[StageRun], object]


@dataclass(frozen=True)
class DelayedAction:
    """An action at a later time. Nothing is held meanwhile.

    due_at: returns the time, or None when there is nothing to do. Called again when the time has come, and before:
        the answer may change.
    """

    due_at: Callable[[StageRun], datetime | None]
    run: Callable[[StageRun], object]


@dataclass(frozen=True)
class SparkJob:
    """A run of spark_jobs/<job>.py.

    check_id: of a quality check, the id of its report; the job is `quality_check` then.
    changes_lake: whether lake/<model> is another table afterwards, so that whoever depends on it has to look again.
    """

    job: str
    engine: Engine
    arguments: tuple[str, ...]
    check_id: str = ""
    changes_lake: bool = False


@dataclass(frozen=True)
class Approval:
    """Waits for a person's yes where the form's field `approve` is true; a no fails the run. `body` is Markdown."""

    subject: str
    body: str
    timeout: timedelta


Work = Action | DelayedAction | SparkJob | Approval


@dataclass(frozen=True)
class PlanStart:
    """What a rebuild starts from.

    version: the number of the version that it makes. replaced: of the one that its promotion replaces, if any.
    """

    record: ReadModelVersions
    request: RebuildRequest
    version: int
    replaced: int | None


def _always(_start: PlanStart) -> bool:
    return True


def _new_version(start: PlanStart) -> int:
    return start.version


@dataclass(frozen=True)
class PlanStage:
    """One stage: one task of the same name in Airflow. Idempotent: it may be killed and repeated at any point.

    description: what it does, in one sentence without a full stop. on_failure: what a failure means, and what to do.
    leaves: what a killed try leaves behind. next_try: what the next try does about that.
    retries, timeout: how often a failed try is repeated, and after which time a try counts as failed.
    is_needed, subject: whether a rebuild that starts there includes the stage, and the number of the version it works on.
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
    is_needed: Callable[[PlanStart], bool] = _always
    subject: Callable[[PlanStart], int] = _new_version
