"""`./foldlake rebuild`: build a new version of a read model, prove it, promote it."""

from typing import Annotated, Any

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    reason: Annotated[str, typer.Option(help="Why: stays with the version.")],
    fold_revision: Annotated[int | None, typer.Option(help="Fold revision; by default the newest.")] = None,
    approve: Annotated[
        bool, typer.Option("--approve/--when-proved", help="Wait for a person's yes, or promote when proved.")
    ] = True,
    grace_hours: Annotated[
        float | None, typer.Option(help="How long the replaced version is kept for a rollback.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Show how it goes until it is promoted.")] = True,
) -> None:
    """Build a new version of a read model from the first event, beside the live one; prove it, and promote it.

    Starts a run of Airflow's DAG `rebuild`. The exit code is 0 when the version is live, lake table included (with
    --no-follow: when the run has begun). Ctrl-C ends the showing, not the rebuild.

    Examples:
      ./foldlake rebuild balance --reason "1 % bonus"

      ./foldlake rebuild balance --reason "as it was in May" --fold-revision 1 --when-proved
    """
    from rich.console import Console

    from cli.display.run_follower import Following, follow_or_leave
    from include.airflow.names import REBUILD_DAG
    from include.declarations.read_model import load_read_models
    from include.rebuild.request import rebuild_request
    from include.settings import Settings
    from stack.components import airflow

    settings = Settings()
    conf: dict[str, Any] = {
        "read_model": read_model,
        "reason": reason,
        "fold_revision": fold_revision,
        "approve": approve,
        "grace_hours": settings.rebuild.grace_h if grace_hours is None else grace_hours,
    }
    # Said here at once what the first task would say a little later.
    rebuild_request(conf, load_read_models(settings.read_models_dir), settings.rebuild.grace_h)
    api = airflow.api(settings)
    run_id = api.trigger(REBUILD_DAG, conf, note=f"{read_model}: {reason}")
    url = f"{settings.airflow.base_url}/dags/{REBUILD_DAG}/runs/{run_id}"
    console = Console()
    console.print(f"rebuild of {read_model} begun: {url}", highlight=False, soft_wrap=True)
    if not follow:
        return
    following = Following(api, REBUILD_DAG, run_id, console, until="promote_lake")
    if not follow_or_leave(following, f"{url} shows it."):
        if following.has_done("promote"):
            console.print(
                "[yellow]Live for lookups, but the lake's table is not it yet.[/yellow] The next compaction brings it along."
            )
        else:
            console.print("[red]Not promoted.[/red] docs/operations.md says what to do when a stage fails.")
        raise typer.Exit(1)
    console.print(f"[green]Promoted.[/green] `./foldlake rollback {read_model} --reason …` goes back.")
