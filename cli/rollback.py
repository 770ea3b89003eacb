"""`./foldlake rollback`: make a previous version of a read model live again."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    to: Annotated[
        int | None, typer.Option(min=1, help="The version; by default the one that was live before.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Show how it goes until it is done.")] = True,
) -> None:
    """Make a previous version live again: for lookups at once, then for the lake's table.

    Starts a run of Airflow's DAG `rollback`. `./foldlake versions` lists the versions.

    Examples:
      ./foldlake rollback balance --reason "the bonus was wrong"

      ./foldlake rollback balance --to 3 --reason "as before"
    """
    from datetime import UTC, datetime

    from rich.console import Console

    from cli.display.run_follower import Following, follow_or_leave
    from include.airflow.names import ROLLBACK_DAG
    from include.declarations.read_model import load_read_models
    from include.rebuild.promotion import choose_rollback
    from include.rebuild.request import rollback_request
    from include.settings import Settings
    from stack.components import airflow

    settings = Settings()
    asked_at = datetime.now(UTC)
    conf = {"read_model": read_model, "version": to, "reason": reason}
    request = rollback_request(conf, load_read_models(settings.read_models_dir))
    # Decided now: when Airflow comes to it, another version may be the one that was live before.
    conf["version"] = version = choose_rollback(settings, request, asked_at)
    api = airflow.api(settings)
    run_id = api.trigger(ROLLBACK_DAG, conf, note=f"{read_model}: {reason}")
    url = f"{settings.airflow.base_url}/dags/{ROLLBACK_DAG}/runs/{run_id}"
    console = Console()
    console.print(f"rollback of {read_model} to v{version} begun: {url}", highlight=False, soft_wrap=True)
    if not follow:
        return
    following = Following(api, ROLLBACK_DAG, run_id, console, until="promote_lake")
    if not follow_or_leave(following, f"{url} shows it."):
        if following.has_done("roll_back"):
            console.print(
                "[yellow]Done for lookups, but not for the lake's table.[/yellow] The next compaction brings it along."
            )
        else:
            console.print("[red]Not done.[/red] `./foldlake versions` shows what is live.")
        raise typer.Exit(1)
    console.print("[green]Done.[/green] Rolling back once more undoes it.")
