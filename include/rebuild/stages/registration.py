"""The stages that begin and end a rebuild's versions: they are registered, and abandoned if they were not promoted."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from include.rebuild.errors import NothingToDoError, RequestError
from include.rebuild.stage import Action, PlanStage, StageRun

ROUTES_TIMEOUT = timedelta(hours=12)


def _register(run: StageRun, topic: str = "") -> dict[str, Any]:
    """Check the form, register the versions and set the run's note; returns their numbers. topic: of a rebuild of all that fold it."""
    from include.declarations.load import load_catalog
    from include.rebuild.registration import register_versions, requested_starts
    from include.rebuild.request import rebuild_request, rebuilt_topic, reject_unknown
    from include.versions.registry import VersionRegistry

    settings = run.settings
    reject_unknown(run.sent, run.form)
    # Reload: Airflow forks its workers from a process that may have imported an older state of the declarations.
    catalog = load_catalog(settings.declaration_folders, reload=True)
    rebuilt = rebuilt_topic(catalog, topic) if topic else None
    request = rebuild_request(run.form, catalog.models, settings.rebuild.grace_h, rebuilt)
    if request.read_models != run.read_models:
        raise RequestError(
            f"{', '.join(request.read_models)} fold {topic} now, and this run was planned for {', '.join(run.read_models)}: start "
            "another one in half a minute, when Airflow has read the declarations again."
        )
    kafka = settings.kafka_connection
    with VersionRegistry(kafka, settings.topics.replication_factor) as registry:
        starts = requested_starts(kafka, registry.read(), catalog.models, request)
        versions = register_versions(registry, settings.stream, catalog.models, request, starts, run.run_id)
    names = ", ".join(f"{name} v{version.number}" for name, version in versions.items())
    of_topic = f" on {request.source_topic}" if request.source_topic else ""
    run.set_note(f"{names}{of_topic}: {request.reason}")
    return {name: version.number for name, version in versions.items()}


REGISTER_CANDIDATE = PlanStage(
    "register_candidate",
    Action(_register, checks_request=True),
    description="registers version N+1 as `building`. A second rebuild of the read model is then rejected",
    on_failure="a server does not respond. A request that is refused, because another rebuild runs or the form is wrong, skips all tasks, "
    "and the run's note says why",
    leaves="a version in the registry, or none",
    next_try="finds the version by the run's id",
)


def register_versions_of(topic: str) -> PlanStage:
    """Return the stage that registers a version of every read model that folds a topic."""
    return replace(
        REGISTER_CANDIDATE,
        name="register_versions",
        work=Action(partial(_register, topic=topic), checks_request=True),
        description="registers a version of every read model that folds the topic, in one record each and one transaction",
        leaves="all versions in the registry, or none",
        next_try="finds the versions by the run's id",
    )


def _read_sources(run: StageRun) -> None:
    from include.declarations.load import load_catalog
    from include.rebuild.routed_events import wait_for_routes

    catalog = load_catalog(run.settings.declaration_folders)
    topic = next(iter(run.versions.values())).source_topic
    wait_for_routes(run.settings.kafka_connection, catalog, topic, ROUTES_TIMEOUT.total_seconds())


READ_SOURCES = PlanStage(
    "read_sources",
    Action(_read_sources),
    description="waits until the new version of each route has read all events that its source had at the start",
    on_failure="the stream driver does not run the new version of a route: `./foldlake status` shows its query",
    next_try="continues to wait",
    timeout=ROUTES_TIMEOUT,
)


def _abandon(run: StageRun) -> None:
    from include.rebuild.retirement import abandon_run

    if not abandon_run(run.settings, run.read_models, run.run_id):
        raise NothingToDoError(f"Run {run.run_id} has no version to abandon.")


ABANDON = PlanStage(
    "abandon",
    Action(_abandon),
    description="runs when a stage up to `promote` failed or was rejected, and after a dry run: N+1 becomes `abandoned`, and what it leaves is removed",
    on_failure="the DAG `retirement` does it",
    leaves="some of the version's files",
    next_try="removes the rest. So does the DAG `retirement`",
)
