"""The stages `choose_version` and `roll_back` of a rollback: make a previous version live again."""

from datetime import timedelta

from include.rebuild.stage import Action, PlanStage, StageRun


def _choose_version(run: StageRun) -> int:
    """Check the form, set the run's note, and return the number of the version to make live."""
    from include.declarations.load import load_catalog
    from include.rebuild.promotion import choose_rollback
    from include.rebuild.request import reject_unknown, rollback_request

    reject_unknown(run.sent, run.form)
    models = load_catalog(run.settings.declaration_folders, reload=True).models
    request = rollback_request(run.form, models)
    number = choose_rollback(run.settings.kafka_connection, request, run.requested_at)
    run.set_note(f"{request.read_model} back to v{number}: {request.reason}")
    return number


def _roll_back(run: StageRun) -> None:
    """Make the version live if it passes the gate, or if the form says so. The run's note names what it lacks."""
    from include.declarations.load import load_catalog
    from include.rebuild.errors import RollbackRefusedError
    from include.rebuild.promotion import check_rollback, roll_back_version

    number = int(run.result_of(CHOOSE_VERSION.name))
    catalog = load_catalog(run.settings.declaration_folders)
    try:
        found = check_rollback(run.settings, catalog, run.read_model, number, force=run.form["force"])
    except RollbackRefusedError as refusal:
        run.set_note(f"{run.read_model}: {run.form['reason']}. {refusal}")
        raise
    if found is not None and found.missing:
        run.set_note(f"{run.read_model} back to v{number} by force: {run.form['reason']}. It lacked: {found}")
    live = None if found is None else found.live
    roll_back_version(run.settings, run.read_model, number, live, " ".join(str(run.form["reason"]).split()))


# Its own stage, so that the version is chosen only once: after a `roll_back`, the version that was live before is another one.
CHOOSE_VERSION = PlanStage(
    "choose_version",
    Action(_choose_version, checks_request=True),
    description="checks the form and chooses the version: the requested one, or the previously live one",
    on_failure="a server does not respond. If there is no such version, or another promotion came first, the run skips all tasks, and its "
    "note has the reason",
    next_try="chooses again, as of the time of the request",
    timeout=timedelta(minutes=5),
)
ROLL_BACK = PlanStage(
    "roll_back",
    Action(_roll_back),
    description="waits at the gate until the driver folds the version and every node has all events of the live one (`force`: does not "
    "wait); then appends one record: the version is `live`, what was live is `previous`",
    on_failure="nothing was changed: the message names what the version lacks, and `force` accepts that; or another version was "
    "promoted in the meantime: `./foldlake versions` shows it",
    leaves="the old record or the new one",
    next_try="finds that the version is live",
    timeout=timedelta(minutes=5),
)
