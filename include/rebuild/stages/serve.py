"""The stages after which a version is served beside the live one: the stream driver folds it, and the query nodes have loaded it."""

from datetime import timedelta
from typing import TYPE_CHECKING

from include.rebuild.errors import NothingToDoError
from include.rebuild.stage import SERVE, Action, PlanStage, StageRun

if TYPE_CHECKING:
    from include.rebuild.stage_progress import StageReporter

TIMEOUT = timedelta(hours=2)


def _reporter(run: StageRun, stage: str) -> "StageReporter":
    from include.rebuild.stage_progress import StageReporter

    settings, number = run.settings, run.version.number
    return StageReporter(
        settings.kafka_connection, settings.topics.replication_factor, run.read_model, number, stage
    )


def _hand_over(run: StageRun) -> None:
    from include.rebuild.handover import hand_over_version
    from include.versions.registry import VersionRegistry

    if run.form.get("dry_run"):
        raise NothingToDoError("This is a dry run: the version was built and compared, and is abandoned now.")
    settings, number = run.settings, run.version.number
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        hand_over_version(
            registry,
            settings.home,
            run.read_model,
            number,
            _reporter(run, HAND_OVER.name),
            settings.rebuild.hydrate_timeout_s,
        )


HAND_OVER = PlanStage(
    "hand_over",
    Action(_hand_over),
    description="makes N+1 a `candidate` and waits until the stream driver folds it in real time",
    on_failure="the stream driver is down, or refuses the candidate: `./foldlake status` shows which",
    leaves="a candidate",
    next_try="continues to wait",
    timeout=TIMEOUT,
    group=SERVE,
)


def _hydrate(run: StageRun) -> None:
    from include.rebuild.hydration import hydrate_version

    hydrate_version(run.settings, run.read_model, run.version.number, _reporter(run, HYDRATE.name))


HYDRATE = PlanStage(
    "hydrate",
    Action(_hydrate),
    description="waits until every query node has loaded every partition of N+1 that it owns or is a standby for",
    on_failure="a query node is down, or has no room: `./foldlake status` shows which",
    next_try="continues to wait",
    timeout=TIMEOUT,
    group=SERVE,
)
