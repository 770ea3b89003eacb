"""A stage of a rebuild as one of several read models that are rebuilt in one run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from include.rebuild.stage import READ_MODEL, VERSION, Action, PlanStage, SparkJob, StageRun
from include.rebuild.stages.register_candidate import REGISTER_CANDIDATE

# The stage that registers the versions of all read models, and the items of its result.
REGISTER = "register_versions"
VERSIONS = "versions"


def version_of(read_model: str) -> str:
    """Return the template of the number of a read model's new version."""
    return f"{{results[{REGISTER}][{VERSIONS}][{read_model}][version]}}"


def task_id(read_model: str, stage: PlanStage) -> str:
    """Return the name of a read model's own stage."""
    return f"{read_model}.{stage.name}"


def for_read_model(stage: PlanStage, read_model: str) -> PlanStage:
    """Return a stage that works on one read model, whatever the form of the run is."""

    def bind(template: str) -> str:
        return template.replace(READ_MODEL, read_model).replace(VERSION, version_of(read_model))

    match stage.work:
        case SparkJob() as job:
            work: SparkJob | Action = replace(
                job,
                arguments=tuple(map(bind, job.arguments)),
                check_id=bind(job.check_id),
                comparison_id=bind(job.comparison_id),
                read_model=read_model,
            )
        case Action() as action:
            work = Action(lambda run: action.run(run_of_read_model(run, read_model)))
        case _:
            raise TypeError(f"{stage.name} cannot be repeated for each read model")
    return replace(stage, name=task_id(read_model, stage), work=work)


def run_of_read_model(run: StageRun, read_model: str) -> StageRun:
    """Return a run as the stages of one read model see it."""
    form = {**run.form, "read_model": read_model}
    return replace(run, form=form, results=_Results(run.results, read_model))


@dataclass(frozen=True)
class _Results(Mapping[str, Any]):
    """The results of one read model's stages, under the names of a rebuild's stages."""

    results: Mapping[str, Any]
    read_model: str

    def __getitem__(self, stage: str) -> Any:  # noqa: ANN401 - any JSON
        if stage == REGISTER_CANDIDATE.name:
            return self.results[REGISTER][VERSIONS][self.read_model]
        return self.results[f"{self.read_model}.{stage}"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)
