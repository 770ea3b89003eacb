"""The stage `register_candidate`: registers the new version."""

from typing import Any

from include.rebuild.stage import Action, PlanStage, StageRun


def register(run: StageRun) -> dict[str, Any]:
    """Check the form, register the version and set the run's note; returns what the later stages need."""
    from include.declarations.load import load_catalog
    from include.rebuild.registration import register_candidate
    from include.rebuild.request import rebuild_request, reject_unknown

    reject_unknown(run.sent, run.form)
    # Reload: Airflow forks its workers from a process that may have imported an older state of the read models.
    models = load_catalog(run.settings.declaration_folders, reload=True).models
    request = rebuild_request(run.form, models, run.settings.rebuild.grace_h)
    version = register_candidate(run.settings, request, run.run_id)
    run.set_note(f"{request.read_model} v{version.number}: {request.reason}")
    return {"version": version.number, "fold_revision": version.fold_revision, "grace_h": request.grace_h}


REGISTER_CANDIDATE = PlanStage(
    "register_candidate",
    Action(register, checks_request=True),
    description="registers version N+1 as `building`; from now on a second rebuild of the read model is refused",
    on_failure="a server does not respond. A request that is refused, because another rebuild runs or the form is wrong, skips all tasks, "
    "and the run's note says why",
    leaves="a version in the registry, or none",
    next_try="finds the version by the run's id",
)
