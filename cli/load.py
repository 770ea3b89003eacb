"""`./foldlake load`: append the demo's purchases to the log as events."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from demo.baskets.dataset import Baskets
    from demo.baskets.loading import LoadResult
    from include.settings import Settings

TOPIC = "balance"


def run(
    first: Annotated[
        int, typer.Option(min=0, help="Load only the oldest N purchases. 0: all purchases.")
    ] = 0,
) -> None:
    """Append a year of purchases at a real grocer to the log, as one FundsAdded event each.

    Each purchase is appended exactly once: a load resumes an interrupted one, and a repeated load appends nothing. Kafka
    and the schema registry must be running (`./foldlake up`).

    Examples:
      ./foldlake load

      ./foldlake load --first 1000
    """
    from rich.console import Console

    from demo.baskets.dataset import Baskets, read_baskets
    from include.settings import Settings

    console = Console()
    baskets = read_baskets()
    if first:
        baskets = Baskets(baskets.events[:first], baskets.skipped)
    load_with_progress(console, Settings(), baskets)


def load_with_progress(console: "Console", settings: "Settings", baskets: "Baskets") -> "LoadResult":
    """Load the baskets with a progress bar, and print the result."""
    from rich.progress import Progress

    from demo.baskets.loading import load

    with Progress(console=console) as progress:
        task = progress.add_task("Loading events", total=len(baskets.events))
        result = load(settings, TOPIC, baskets.events, lambda done: progress.update(task, completed=done))
    console.print(
        f"Appended {result.appended:,} events to topic {TOPIC}; {result.present:,} were already there. "
        f"Skipped {baskets.skipped} purchases of 0.00.",
        highlight=False,
        soft_wrap=True,
    )
    return result
