"""The parts of a plan's stage: its work, its description, and its retries. Imports no engine.

The texts of a stage's work (a job's arguments, an approval's question) are templates for `str.format` with two fields:
`{form[reason]}` is a field of the form, `{results[promote]}` the result of an earlier stage, `{results[s][x]}` an item of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from include.rebuild.request import RebuildRequest
from include.settings import Settings

READ_MODEL = "{form[read_model]}"
# The version that a rebuild builds. Only stages after `register_candidate` can use this template.
VERSION = "{results[register_candidate][version]}"
# The arguments that give a Spark job its version.
VERSION_ARGUMENTS = ("--read-model", READ_MODEL, "--version", VERSION)
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


@dataclass(frozen=True)
class StageRun:
    """The run of a plan, as a stage's action sees it.

    form: the form's fields, defaults included. sent: the fields as sent, which may include unknown ones.
    results: the results of earlier stages, by the stage's name. requested_at: when the run was requested.
    set_note: sets the text that Airflow shows with the run.
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
        """The version that a rebuild builds; only after `register_candidate`."""
        return int(self.text(VERSION))

    def text(self, template: str) -> str:
        """Fill in a template."""
        return template.format(form=self.form, results=self.results)


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

    check_id: the id of the report, if the job is a quality check. comparison_id: the same, if it is a comparison of two versions.
    changes_lake: whether the job replaces lake/<model>, so that a quality check must follow.
    read_model: the read model, if it is not the one in the form.
    """

    job: str
    engine: Engine
    arguments: tuple[str, ...]
    check_id: str = ""
    changes_lake: bool = False
    read_model: str = ""
    comparison_id: str = ""


@dataclass(frozen=True)
class Approval:
    """Waits for approval if the form's field `approve` is true, or a threshold is exceeded; a rejection fails the run.

    body: in Markdown. exceeded: returns a sentence for each threshold of the form that is exceeded; they precede the body.
    """

    subject: str
    body: str
    timeout: timedelta
    exceeded: Callable[[StageRun], Sequence[str]]


Work = Action | SparkJob | Approval


@dataclass(frozen=True)
class PlanStart:
    """What determines the stages of a rebuild. version: the number of the version that it builds."""

    request: RebuildRequest
    version: int


def _always(_start: PlanStart) -> bool:
    return True


@dataclass(frozen=True)
class PlanStage:
    """One stage: one task of the same name in Airflow. Idempotent: it may be killed and repeated at any point.

    description: what it does, without a full stop. on_failure: what a failure means, and what to do.
    leaves: what a killed try leaves behind. next_try: what the next try does.
    priority: which of the stages that wait for a slot starts first: the one with the largest priority.
    retries, timeout: how often a failed try is repeated; how long a try may take.
    group: the box in which Airflow's graph shows it together with the next ones of its group; empty for none.
    is_needed: whether the plan of a rebuild includes the stage.
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
    is_needed: Callable[[PlanStart], bool] = _always
