"""`./foldlake rebuild`: build a new version of a read model, verify it, promote it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from include.rebuild.plan import PlannedStage
    from include.rebuild.request import RebuildRequest
    from include.settings import Settings


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    reason: Annotated[str, typer.Option(help="The reason, stored with the version.")],
    fold_revision: Annotated[int | None, typer.Option(help="Fold revision. Default: the newest.")] = None,
    approve: Annotated[
        bool,
        typer.Option("--approve/--when-proved", help="Wait for approval, or promote once verified."),
    ] = True,
    grace_hours: Annotated[
        float | None, typer.Option(help="Hours to keep the replaced version for a rollback.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Show the stages until the version is live.")] = True,
) -> None:
    """Build a new version of a read model from the first event, next to the live version; verify it, and promote it.

    Starts a run of Airflow's DAG `rebuild`. The exit code is 0 when the version is live, lake table included (with
    --no-follow: when the run has started). Ctrl-C stops following; the rebuild continues.

    Examples:
      ./foldlake rebuild balance --reason "1 % bonus"

      ./foldlake rebuild balance --reason "as it was in May" --fold-revision 1 --when-proved
    """
    from rich.console import Console

    from cli.display.run_display import RunToFollow, trigger_and_follow
    from include.airflow.names import REBUILD_DAG
    from include.declarations.read_model import load_read_models
    from include.rebuild.request import rebuild_request
    from include.settings import Settings

    settings, console = Settings(), Console()
    conf: dict[str, Any] = {
        "read_model": read_model,
        "reason": reason,
        "fold_revision": fold_revision,
        "approve": approve,
        "grace_hours": settings.rebuild.grace_h if grace_hours is None else grace_hours,
    }
    # Also checked here, so that an invalid request fails immediately instead of in the run's first task.
    request = rebuild_request(conf, load_read_models(settings.declaration_folders), settings.rebuild.grace_h)
    wanted = RunToFollow(
        f"rebuild of {read_model}",
        REBUILD_DAG,
        conf,
        note=f"{read_model}: {reason}",
        plan=_plan(settings, request),
        until=["promote_lake"],
    )
    dag_run, succeeded = trigger_and_follow(console, settings, wanted, follow=follow)
    if not follow:
        return
    if succeeded:
        console.print(f"[green]Promoted.[/green] `./foldlake rollback {read_model} --reason …` undoes it.")
        return
    if dag_run.has_succeeded("promote"):
        console.print(
            "[yellow]Live for lookups, but the lake's table still has the old version.[/yellow] The next compaction replaces it."
        )
    else:
        console.print("[red]Not promoted.[/red] docs/operations.md lists the remedy for each failed stage.")
    raise typer.Exit(1)


def _plan(settings: "Settings", request: "RebuildRequest") -> "tuple[PlannedStage, ...]":
    """Return the rebuild's stages, based on the registry's current record."""
    from include.rebuild.plan import rebuild_plan
    from include.versions.registry import VersionRegistry
    from include.versions.transitions import record_of

    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        return rebuild_plan(record_of(registry, request.read_model), request)
