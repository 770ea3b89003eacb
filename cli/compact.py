"""`./foldlake compact`: update the lake's tables now."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="A read model. Default: all read models.")] = "",
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Run OPTIMIZE and VACUUM even if they are not due.")
    ] = False,
    follow: Annotated[bool, typer.Option(help="Show the tasks until the tables are up to date.")] = True,
) -> None:
    """Update the lake's tables to the end of the live changelogs.

    Starts a run of Airflow's DAG `compaction`, which is also scheduled every few minutes. `./foldlake lake` shows the result.

    Examples:
      ./foldlake compact

      ./foldlake compact balance --optimize
    """
    from rich.console import Console

    from cli.display.run_display import RunToFollow, trigger_and_follow
    from include.airflow.names import COMPACTION_DAG
    from include.declarations.read_model import load_read_models
    from include.declarations.read_model import read_model as declared
    from include.settings import Settings

    settings, console = Settings(), Console()
    models = load_read_models(settings.declaration_folders)
    names = [declared(read_model, settings.declaration_folders).name] if read_model else list(models)
    wanted = RunToFollow(
        "compaction",
        COMPACTION_DAG,
        {"read_model": read_model or "all", "optimize": optimize},
        until=[f"compact_{name}" for name in names],
    )
    _, succeeded = trigger_and_follow(console, settings, wanted, follow=follow)
    if not follow:
        return
    if not succeeded:
        raise typer.Exit(1)
    console.print("[green]Done.[/green] `./foldlake lake` shows the tables.")
