"""`./foldlake up`: start the embedded stack."""

from typing import Annotated

import typer


def run(
    only: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Start only these components, separated by commas: kafka, registry, redis, query_nodes, airflow, stream.",
        ),
    ] = "",
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Only print what would be started or replaced, and why."),
    ] = False,
) -> None:
    """Start the embedded stack, and wait until every process is ready.

    Running processes are kept, except those whose settings or read models have changed. These are replaced one after the other: a new
    stream driver, and a new HTTP server of a query node, gets ready before the present one stops. Ports, memory and folders are
    settings, listed in .env.example.

    Examples:
      ./foldlake up

      ./foldlake up --only kafka,registry

      ./foldlake up --plan

      FOLDLAKE_KAFKA_PORT=19092 ./foldlake up
    """
    import sys

    from rich.console import Console

    from cli.display.start_display import ProgressDisplay, endpoints, planned_lines
    from include.errors import SettingsError
    from include.settings import Settings, setting_warnings
    from stack.components.stream import missing_supervisor
    from stack.lifecycle import COMPONENTS, start
    from stack.plan import plan as what_up_does

    settings = Settings()
    for warning in setting_warnings():
        print(f"Warning: {warning}", file=sys.stderr)
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in COMPONENTS]:
        raise SettingsError(
            f"--only {only}: unknown component {unknown[0]!r}. Available: {', '.join(COMPONENTS)}."
        )
    if plan:
        print(planned_lines(what_up_does(settings, wanted)))
        return
    console = Console()
    try:
        with ProgressDisplay(console) as display:
            start(settings, wanted, display)
    except KeyboardInterrupt:
        console.print(
            "Interrupted. Continue with `./foldlake up`, or stop what was started with `./foldlake down`."
        )
        raise typer.Exit(130) from None
    if not wanted:
        print(endpoints(settings))
        if note := missing_supervisor(settings):
            print(note)
