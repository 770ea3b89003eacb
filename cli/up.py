"""`./foldlake up`: start the embedded stack."""

from typing import Annotated

import typer


def run(
    only: Annotated[
        str,
        typer.Option(help="Start only these, with commas between: kafka, registry, query_nodes, airflow."),
    ] = "",
) -> None:
    """Start the embedded stack, in order, and wait until every process answers.

    What is up already stays as it is; what has other settings or read models than before is started anew.
    Ports and all else are settings: see .env.example.

    Examples:
      ./foldlake up

      ./foldlake up --only kafka,registry

      FOLDLAKE_KAFKA_PORT=19092 ./foldlake up
    """
    from rich.console import Console

    from cli.display.endpoints import places
    from cli.display.start_display import ProgressDisplay
    from include.errors import SettingsError
    from include.settings import Settings
    from stack.lifecycle import COMPONENTS, start

    settings = Settings()
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in COMPONENTS]:
        raise SettingsError(f"--only {only}: there is no {unknown[0]!r}. There are: {', '.join(COMPONENTS)}.")
    console = Console()
    try:
        with ProgressDisplay(console) as display:
            start(settings, wanted, display)
    except KeyboardInterrupt:
        console.print("Interrupted. `./foldlake up` goes on, `./foldlake down` stops what was started.")
        raise typer.Exit(130) from None
    if not wanted:
        print(places(settings))
