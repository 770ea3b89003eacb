"""`./foldlake compact`: bring the tables in the lake up to date now."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="A read model; none: all of them.")] = "",
    optimize: Annotated[bool, typer.Option("--optimize", help="OPTIMIZE and VACUUM in any case.")] = False,
    follow: Annotated[bool, typer.Option(help="Show how it goes until it is done.")] = True,
) -> None:
    """Bring the lake's tables up to the end of the live changelogs.

    Starts a run of Airflow's DAG `compaction`, which does so every few minutes by itself. `./foldlake lake` shows the result.

    Examples:
      ./foldlake compact

      ./foldlake compact balance --optimize
    """
    from rich.console import Console

    from cli.display.run_follower import Following, follow_or_leave
    from include.airflow.names import COMPACTION_DAG
    from include.declarations.read_model import load_read_models
    from include.declarations.read_model import read_model as declared
    from include.settings import Settings
    from stack.components import airflow

    settings, console = Settings(), Console()
    models = load_read_models(settings.read_models_dir)
    names = [declared(read_model, settings.read_models_dir).name] if read_model else list(models)
    api = airflow.api(settings)
    run_id = api.trigger(COMPACTION_DAG, {"read_model": read_model or "all", "optimize": optimize})
    url = f"{settings.airflow.base_url}/dags/{COMPACTION_DAG}/runs/{run_id}"
    console.print(f"compaction begun: {url}", highlight=False, soft_wrap=True)
    if not follow:
        return
    for name in names:
        following = Following(api, COMPACTION_DAG, run_id, console, until=f"compact_{name}")
        if not follow_or_leave(following, f"{url} shows it."):
            raise typer.Exit(1)
    console.print("[green]Done.[/green] `./foldlake lake` shows the tables.")
