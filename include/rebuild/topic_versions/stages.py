"""The stages of a topic's rebuild that concern all its read models; the others are those of a rebuild, once for each read model."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from include.rebuild.stage import Action, Approval, PlanStage, StageRun
from include.rebuild.stages.approve import exceeded_thresholds
from include.rebuild.stages.hydrate import HYDRATE
from include.rebuild.topic_versions.binding import REGISTER, VERSIONS, run_of_read_model, task_id, version_of

ROUTES_TIMEOUT = timedelta(hours=12)


def register_versions(topic: str) -> PlanStage:
    """Return the stage that registers a version of every read model."""

    def run(run: StageRun) -> dict[str, Any]:
        from include.declarations.load import load_catalog
        from include.rebuild.topic_versions.registration import register_together
        from include.rebuild.topic_versions.request import topic_request

        # Reload: Airflow forks its workers from a process that may have imported an older state of the declarations.
        catalog = load_catalog(run.settings.declaration_folders, reload=True)
        request = topic_request(topic, run.sent, catalog, run.settings.rebuild.grace_h)
        versions = register_together(run.settings, catalog, request, run.run_id)
        names = ", ".join(f"{name} v{version.number}" for name, version in versions.items())
        run.set_note(f"{names} on {request.new_topic}: {request.reason}")
        return {
            "topic": request.new_topic,
            "grace_h": request.grace_h,
            VERSIONS: {
                name: {"version": version.number, "fold_revision": version.fold_revision}
                for name, version in versions.items()
            },
        }

    return PlanStage(
        REGISTER,
        Action(run, checks_request=True),
        description="registers a version of every read model that folds the topic, in one record each and one transaction",
        on_failure="a server does not respond. A request that is refused, because another rebuild runs or the form is wrong, skips all "
        "tasks, and the run's note says why",
        leaves="all versions in the registry, or none",
        next_try="finds the versions by the run's id",
    )


def _read_sources(run: StageRun) -> None:
    from include.rebuild.routed.route_wait import wait_for_routes

    wait_for_routes(run.settings, run.results[REGISTER]["topic"], ROUTES_TIMEOUT.total_seconds())


READ_SOURCES = PlanStage(
    "read_sources",
    Action(_read_sources),
    description="waits until the new version of each route has read all events that its source had at the start",
    on_failure="the stream driver does not run the new version of a route: `./foldlake status` shows its query",
    next_try="continues to wait",
    timeout=ROUTES_TIMEOUT,
)


def approve_together(topic: str, read_models: Sequence[str]) -> PlanStage:
    """Return the stage that waits for the approval of all versions."""
    names = ", ".join(f"v{version_of(name)} of {name}" for name in read_models)
    results = "\n\n".join(
        f"**{name} v{version_of(name)}**\n\n{{results[{task_id(name, HYDRATE)}]}}" for name in read_models
    )

    def exceeded(run: StageRun) -> list[str]:
        return [
            f"{name}: {sentence}"
            for name in read_models
            for sentence in exceeded_thresholds(run_of_read_model(run, name))
        ]

    return PlanStage(
        "approve",
        Approval(
            subject=f"Promote {names}, together? {{form[reason]}}",
            body=f"They fold {{results[{REGISTER}][topic]}}, a new version of {topic}. Verified and compared:\n\n{results}",
            timeout=timedelta(days=7),
            exceeded=exceeded,
        ),
        description="shows what changes in each read model and the results of all checks, and waits up to 7 days for approval; passes at once "
        "when the form requests none and no threshold is exceeded",
        on_failure="it was rejected, or not answered in time: all candidates are abandoned",
        next_try="asks again",
        timeout=None,
    )


def _versions(run: StageRun) -> dict[str, int]:
    return {name: int(found["version"]) for name, found in run.results[REGISTER][VERSIONS].items()}


def _promote(run: StageRun) -> dict[str, int]:
    from include.rebuild.topic_versions.promotion import promote_together

    return promote_together(run.settings, _versions(run), float(run.results[REGISTER]["grace_h"]))


PROMOTE_TOGETHER = PlanStage(
    "promote",
    Action(_promote),
    description="waits at the gate of each candidate, then makes all of them live in one transaction",
    on_failure="the message names what a candidate lacks; or another version was promoted in the meantime: `./foldlake versions` shows it",
    leaves="the old records of all read models, or the new ones",
    next_try="finds that the versions are live",
    timeout=timedelta(hours=2),
)


def _abandon(run: StageRun, read_models: Sequence[str]) -> None:
    from include.rebuild.errors import NothingToDoError
    from include.rebuild.retirement import abandon_run

    abandoned = [abandon_run(run.settings, name, run.run_id) for name in read_models]
    if not any(abandoned):
        raise NothingToDoError(f"Run {run.run_id} has no version to abandon.")


def abandon_together(read_models: Sequence[str]) -> PlanStage:
    """Return the stage that removes the versions if they were not promoted."""
    return PlanStage(
        "abandon",
        Action(lambda run: _abandon(run, read_models)),
        description="runs when a stage up to `promote` failed or was rejected, and after a dry run: every new version becomes `abandoned`, and what it leaves is "
        "removed. The route's new version goes on",
        on_failure="the DAG `retirement` does it",
        leaves="some of the versions' files",
        next_try="removes the rest. So does the DAG `retirement`",
    )
