"""`./foldlake rebuild`: build a new version of a read model, or of all that fold a topic, verify it, compare it, promote it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cli.display.run_display import RunToFollow
    from include.settings import Settings

DRY_RUN_REASON = "dry run"


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    reason: Annotated[
        str, typer.Option(help="The reason, stored with the version; required unless it is a dry run.")
    ] = "",
    read_model: Annotated[str, typer.Argument(help="The read model.")] = "",
    topic: Annotated[
        str, typer.Option(help="Instead of a read model: all that fold this topic, from its new version.")
    ] = "",
    fold_revision: Annotated[int | None, typer.Option(help="Fold revision. Default: the newest.")] = None,
    approve: Annotated[
        bool,
        typer.Option(
            "--approve/--auto-promote",
            help="Wait for approval, or promote once verified, if no threshold is exceeded.",
        ),
    ] = True,
    max_changed_percent: Annotated[
        float | None,
        typer.Option(help="With --auto-promote: require approval if more of the keys differ, in percent."),
    ] = None,
    max_total_change: Annotated[
        float | None,
        typer.Option(
            help="With --auto-promote: require approval if a numeric field changes by more over all keys, without signs."
        ),
    ] = None,
    no_negative: Annotated[
        bool,
        typer.Option(
            "--no-negative",
            help="With --auto-promote: require approval if a numeric field of a key is below zero.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Build, verify and compare the version, show what changes, and abandon it."
        ),
    ] = False,
    grace_hours: Annotated[
        float | None, typer.Option(help="Hours to keep the replaced version for a rollback.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Show the stages until the version is live.")] = True,
    abort: Annotated[
        bool,
        typer.Option("--abort", help="Stop the running rebuild of the read model, and remove its version."),
    ] = False,
) -> None:
    """Build a new version of a read model from the first event, next to the live version; verify it, compare it, and promote it.

    With --topic, it rebuilds every read model that folds this topic, after a route has a new version, and promotes all at once
    (docs/routes.md).

    Starts a run of Airflow's DAG `rebuild`, or `rebuild_topic.<topic>`. Ctrl-C stops following; the rebuild continues.

    The exit code is 0 when the version is live, lake table included. With --no-follow, it is 0 when the run has started; with --dry-run, when no
    threshold is exceeded.

    Examples:
      ./foldlake rebuild balance --reason "1 % bonus"

      ./foldlake rebuild balance --dry-run

      ./foldlake rebuild balance --reason "1 % bonus" --auto-promote --max-changed-percent 5 --no-negative

      ./foldlake rebuild balance --reason "as it was in May" --fold-revision 1 --auto-promote

      ./foldlake rebuild --topic loyalty-invoices --reason "staff cards earn no points"

      ./foldlake rebuild balance --abort
    """
    from include.settings import Settings

    if abort:
        _abort(Settings(), read_model)
        return
    if bool(read_model) == bool(topic):
        raise typer.BadParameter("Give a read model, or --topic.")
    if topic and fold_revision is not None:
        raise typer.BadParameter("--topic builds each read model with its newest fold revision.")
    if not reason and not dry_run:
        raise typer.BadParameter("Give --reason: it is stored with the version.")
    settings = Settings()
    conf: dict[str, Any] = {
        "reason": reason or DRY_RUN_REASON,
        "approve": approve,
        "max_changed_percent": max_changed_percent,
        "max_total_change": max_total_change,
        "no_negative": no_negative,
        "dry_run": dry_run,
        "grace_hours": settings.rebuild.grace_h if grace_hours is None else grace_hours,
    }
    if not topic:
        conf |= {"read_model": read_model, "fold_revision": fold_revision}
    wanted = rebuild_run(settings, conf, topic)
    follow_promotion(settings, wanted, read_model or "<read model>", follow=follow)


def _abort(settings: "Settings", read_model: str) -> None:
    """Stop the running rebuild of a read model, and say which versions are gone."""
    from include.airflow.rebuild_runs import abort_rebuild
    from include.observability.logs import configure_logs

    if not read_model:
        raise typer.BadParameter(
            "--abort needs a read model. All that are rebuilt in the same run end with it."
        )
    configure_logs(settings.log.format, "command line", text="%(message)s")
    aborted = abort_rebuild(settings, read_model)
    versions = ", ".join(f"v{number} of {name}" for name, number in aborted.versions.items())
    print(f"Aborted: {versions}. The live version was not touched.")


def follow_promotion(settings: "Settings", wanted: "RunToFollow", undo: str, *, follow: bool) -> None:
    """Start the run of a rebuild, show its stages if requested, and print the outcome. undo: the read model of the advice to roll back."""
    from rich.console import Console

    from cli.display.comparison_display import ShownChanges
    from cli.display.run_display import trigger_and_follow

    console = Console()
    changes = ShownChanges(console, settings, wanted.conf)
    dag_run, succeeded = trigger_and_follow(
        console, settings, wanted, follow=follow, on_event=changes.show_if_compared
    )
    if not follow:
        return
    if succeeded and wanted.conf.get("dry_run"):
        console.print("Dry run: the live version was not touched, and the new one is abandoned.")
        raise typer.Exit(1 if changes.exceeded else 0)
    if succeeded:
        console.print(
            f"[green]Promoted.[/green] `./foldlake rollback {undo} --reason …` undoes it.", highlight=False
        )
        return
    if dag_run.is_aborted:
        console.print("[yellow]Aborted.[/yellow] The live version was not touched.")
    elif dag_run.has_succeeded("promote"):
        console.print(
            "[yellow]Live for lookups, but the lake's table still has the old version.[/yellow] The next compaction replaces it."
        )
    else:
        console.print("[red]Not promoted.[/red] docs/operations.md lists the remedy for each failed stage.")
    raise typer.Exit(1)


def rebuild_run(settings: "Settings", conf: dict[str, Any], topic: str = "") -> "RunToFollow":
    """Return the rebuild of the read model in `conf`, or of all that fold a topic; its stages are based on the registry's current records.

    Raises the errors of a request that is refused, so that it makes no run.
    """
    from cli.display.run_display import RunToFollow
    from cli.servers import AIRFLOW, KAFKA, require_up
    from include.airflow.names import REBUILD_DAG, topic_rebuild_dag
    from include.declarations.load import load_catalog, read_model
    from include.rebuild.plan import planned_stages, rebuild_plan
    from include.rebuild.registration import permitted_transitions, requested_starts
    from include.rebuild.request import rebuild_request, rebuilt_topic
    from include.rebuild.stages.promotion import PROMOTE_LAKE
    from include.versions.registry import VersionRegistry

    folders = settings.declaration_folders
    if not topic:
        # Its error names the modules that do not load.
        read_model(conf["read_model"], folders)
    catalog = load_catalog(folders)
    rebuilt = rebuilt_topic(catalog, topic) if topic else None
    request = rebuild_request(conf, catalog.models, settings.rebuild.grace_h, rebuilt)
    require_up(settings, (KAFKA, AIRFLOW))
    with VersionRegistry(settings.kafka_connection) as registry:
        records = registry.read()
    starts = requested_starts(settings.kafka_connection, records, catalog.models, request)
    permitted_transitions(records, settings.stream, catalog.models, request, starts)
    plan = rebuild_plan(request.read_models, topic)
    stages = planned_stages(plan, request, records)
    names = [planned.stage.name for planned in stages]
    source = f" from {request.source_topic}" if request.source_topic else ""
    return RunToFollow(
        f"rebuild of {', '.join(request.read_models)}{source}",
        topic_rebuild_dag(topic) if topic else REBUILD_DAG,
        conf,
        note=f"{request.source_topic or request.read_models[0]}: {request.reason}",
        plan=stages,
        until=names if request.dry_run else [name for name in names if name.endswith(PROMOTE_LAKE.name)],
    )
