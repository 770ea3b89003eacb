"""`./foldlake compact`: update the lake's tables now."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[
        str, typer.Argument(help="A read model or an event table. Default: all of them.")
    ] = "",
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Run OPTIMIZE and VACUUM even if they are not due.")
    ] = False,
    follow: Annotated[bool, typer.Option(help="Show the tasks until the tables are up to date.")] = True,
) -> None:
    """Update the lake's tables: read models to the end of the live changelogs, event tables to the end of their topics.

    Starts a run of Airflow's DAG `compaction`, which is also scheduled every few minutes. `./foldlake lake` shows the result.

    Examples:
      ./foldlake compact

      ./foldlake compact balance --optimize

      ./foldlake compact events/balance
    """
    from rich.console import Console

    from cli.display.run_display import RunToFollow, trigger_and_follow
    from include.airflow.lake_runs import tasks_of
    from include.airflow.names import ALL_TABLES, COMPACTION_DAG
    from include.declarations.topic_tables import load_lake_catalog
    from include.settings import Settings

    settings, console = Settings(), Console()
    catalog = load_lake_catalog(settings)
    catalog.require_table(read_model)
    names = [read_model] if read_model else catalog.names
    wanted = RunToFollow(
        "compaction",
        COMPACTION_DAG,
        {"read_model": read_model or ALL_TABLES, "optimize": optimize},
        until=tasks_of(catalog, names),
    )
    _, succeeded = trigger_and_follow(console, settings, wanted, follow=follow)
    if not follow:
        return
    if not succeeded:
        raise typer.Exit(1)
    console.print("[green]Done.[/green] `./foldlake lake` shows the tables.")
