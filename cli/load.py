"""`./foldlake load`: append the grocer's baskets to the log as events."""

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
        int, typer.Option(min=0, help="Only this many baskets, the oldest; 0: all of them.")
    ] = 0,
) -> None:
    """Append a year of a real grocer's baskets to the log: one FundsAdded event for each basket.

    Each basket becomes one event, once: a load that was interrupted goes on where it stopped, and a second load
    appends nothing. Needs Kafka and the schema registry up.

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
    """Load the baskets with a progress bar, and say what came of it."""
    from rich.progress import Progress

    from demo.baskets.loading import load

    with Progress(console=console) as progress:
        task = progress.add_task("Loading events", total=len(baskets.events))
        result = load(settings, TOPIC, baskets.events, lambda done: progress.update(task, completed=done))
    console.print(
        f"{result.appended:,} events appended to topic {TOPIC}, {result.present:,} were there already; "
        f"{baskets.skipped} baskets that total 0.00 skipped.",
        highlight=False,
        soft_wrap=True,
    )
    return result
