"""A rebuild and a rollback as data: which stages, in which order, on which version. Made without any engine.

Each stage is one Airflow task of the same name, idempotent. Stages with the same `step` may run side by side.
"""

from dataclasses import dataclass
from typing import ClassVar

from include.rebuild.request import RebuildRequest, RollbackRequest
from include.versions.registry import ReadModelVersions
from include.versions.transitions import rollback_target


@dataclass(frozen=True)
class PlanStage:
    """One stage: what it does is said by its class, on what by its fields."""

    name: ClassVar[str]
    step: ClassVar[int]

    read_model: str
    version: int


@dataclass(frozen=True)
class RegisterCandidate(PlanStage):
    """Enter the new version in the registry, BUILDING: from now on a second rebuild is refused."""

    name: ClassVar[str] = "register_candidate"
    step: ClassVar[int] = 1

    fold_revision: int
    reason: str


@dataclass(frozen=True)
class CatchUp(PlanStage):
    """Fold the version's changelog from the first event, with the stream's own query."""

    name: ClassVar[str] = "catch_up"
    step: ClassVar[int] = 2


@dataclass(frozen=True)
class BuildStaging(PlanStage):
    """Fold the same events in one batch, past query and changelog: a second opinion."""

    name: ClassVar[str] = "build_staging"
    step: ClassVar[int] = 2


@dataclass(frozen=True)
class Verify(PlanStage):
    """Prove changelog and staging against the log."""

    name: ClassVar[str] = "verify"
    step: ClassVar[int] = 3


@dataclass(frozen=True)
class HandOver(PlanStage):
    """Give the version to the stream driver, which goes on from its checkpoint in real time."""

    name: ClassVar[str] = "hand_over"
    step: ClassVar[int] = 4


@dataclass(frozen=True)
class Hydrate(PlanStage):
    """Wait until every query node has loaded the version beside the live one."""

    name: ClassVar[str] = "hydrate"
    step: ClassVar[int] = 5


@dataclass(frozen=True)
class Approve(PlanStage):
    """Wait for a person's yes."""

    name: ClassVar[str] = "approve"
    step: ClassVar[int] = 6


@dataclass(frozen=True)
class Promote(PlanStage):
    """Make it live: one record, by compare-and-set. What was live is kept as the previous version."""

    name: ClassVar[str] = "promote"
    step: ClassVar[int] = 7

    grace_h: float


@dataclass(frozen=True)
class RollBack(PlanStage):
    """Make a previous version live again: one record."""

    name: ClassVar[str] = "roll_back"
    step: ClassVar[int] = 7


@dataclass(frozen=True)
class PromoteLake(PlanStage):
    """Make the lake's table hold the live version: one commit."""

    name: ClassVar[str] = "promote_lake"
    step: ClassVar[int] = 8


@dataclass(frozen=True)
class Retire(PlanStage):
    """After the grace time, retire the version that was replaced and remove what it leaves."""

    name: ClassVar[str] = "retire"
    step: ClassVar[int] = 9

    grace_h: float


def rebuild_plan(record: ReadModelVersions, request: RebuildRequest) -> tuple[PlanStage, ...]:
    """Return the stages of a rebuild of what the registry's record says, in order."""
    model, number = request.read_model, max(v.number for v in record.versions) + 1
    stages: list[PlanStage] = [
        RegisterCandidate(model, number, request.fold_revision, request.reason),
        CatchUp(model, number),
        BuildStaging(model, number),
        Verify(model, number),
        HandOver(model, number),
        Hydrate(model, number),
    ]
    if request.approve:
        stages.append(Approve(model, number))
    stages += [Promote(model, number, request.grace_h), PromoteLake(model, number)]
    if record.live is not None:
        stages.append(Retire(model, record.live.number, request.grace_h))
    return tuple(stages)


def rollback_plan(record: ReadModelVersions, request: RollbackRequest) -> tuple[PlanStage, ...]:
    """Return the stages of a rollback, in order; raises NothingToRollBackToError."""
    number = rollback_target(record).number if request.version is None else request.version
    return (RollBack(request.read_model, number), PromoteLake(request.read_model, number))


def described(plan: tuple[PlanStage, ...]) -> str:
    """Return a plan as text, one line for each stage."""
    return "\n".join(f"{stage.name:<20}v{stage.version}  {(stage.__doc__ or '').strip()}" for stage in plan)
