"""`./foldlake rollback`: make a previous version of a read model live again."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    to: Annotated[
        int | None, typer.Option(min=1, help="The version. Default: the one that was live before.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Roll back even if the version lacks events or nodes.")
    ] = False,
    follow: Annotated[bool, typer.Option(help="Show the stages until the rollback is complete.")] = True,
) -> None:
    """Make a previous version live again: within seconds for lookups, then for the lake's table.

    Starts a run of Airflow's DAG `rollback`. `./foldlake versions` lists the versions. If the version lacks events of the live
    one, or a query node has not loaded it, the command waits up to a minute. It then names what is missing and changes nothing.

    Examples:
      ./foldlake rollback balance --reason "the bonus was wrong"

      ./foldlake rollback balance --to 3 --reason "as before"

      ./foldlake rollback balance --reason "wrong numbers are worse than old ones" --force
    """
    from datetime import UTC, datetime

    from rich.console import Console

    from cli.display.run_display import RunToFollow, trigger_and_follow
    from include.airflow.names import ROLLBACK_DAG
    from include.declarations.load import load_catalog
    from include.rebuild.gate import look_at_gate
    from include.rebuild.plan import rollback_plan
    from include.rebuild.promotion import choose_rollback
    from include.rebuild.request import rollback_request
    from include.settings import Settings

    settings, console = Settings(), Console()
    requested_at = datetime.now(UTC)
    conf = {"read_model": read_model, "version": to, "reason": reason, "force": force}
    catalog = load_catalog(settings.declaration_folders)
    request = rollback_request(conf, catalog.models)
    # Chosen now: by the time Airflow starts the run, the previously live version may be another one.
    conf["version"] = version = choose_rollback(settings.kafka_connection, request, requested_at)
    if force and (lacking := look_at_gate(settings, catalog, read_model, version)).missing:
        console.print(f"[yellow]v{version} lacks:[/yellow]", end=" ")
        console.print(str(lacking), highlight=False, markup=False, soft_wrap=True)
    wanted = RunToFollow(
        f"rollback of {read_model} to v{version}",
        ROLLBACK_DAG,
        conf,
        note=f"{read_model}: {reason}",
        plan=rollback_plan(version),
        until=["promote_lake"],
    )
    dag_run, succeeded = trigger_and_follow(console, settings, wanted, follow=follow)
    if not follow:
        return
    if succeeded:
        console.print("[green]Done.[/green] A second rollback undoes it.")
        return
    if dag_run.has_succeeded("roll_back"):
        console.print(
            "[yellow]Done for lookups, but the lake's table still has the other version.[/yellow] The next compaction replaces "
            "it."
        )
    else:
        console.print(
            f"[red]Not done.[/red] The log above names the reason. If v{version} lacks something, --force rolls back nevertheless. "
            "`./foldlake versions` shows which version is live."
        )
    raise typer.Exit(1)
