"""`./foldlake demo`: the whole path, from a real grocer's baskets to every balance, checked."""

import time
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import typer

from include.errors import FoldlakeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from demo.baskets.comparison import NodeComparison
    from demo.baskets.ledger import Account
    from include.settings import Settings

# From a cold start: the driver's JVM, its first batch, and the year's events, on a busy machine.
FOLD_TIMEOUT_S = 300.0
# A stream in real-time mode that is behind moves many times in this time.
SETTLED_S = 15.0
# What is folded reaches the nodes within milliseconds; their last records may still be on the way.
ARRIVAL_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.5
SHOWN_DIFFERENCES = 10


def run() -> None:
    """Start everything, load a year of a real grocer's baskets, and check every household's balance to the cent.

    Leaves the stack running. A second run finds everything there and only checks again.

    Example:
      ./foldlake demo
    """
    from rich.console import Console

    from cli.display.endpoints import places
    from cli.display.start_display import ProgressDisplay
    from cli.load import TOPIC, load_with_progress
    from demo.baskets.comparison import expected_accounts
    from demo.baskets.dataset import read_baskets
    from demo.baskets.ledger import read_ledger
    from include.settings import Settings
    from stack.lifecycle import start

    console = Console()
    settings = Settings()
    console.rule("[bold]1 of 4: start the stack", align="left")
    with ProgressDisplay(console) as display:
        start(settings, listener=display)
    console.rule("[bold]2 of 4: load the events", align="left")
    baskets = read_baskets()
    loaded = load_with_progress(console, settings, baskets)
    console.rule("[bold]3 of 4: fold them", align="left")
    wait_until_folded(console, settings, len(baskets.events))
    console.rule("[bold]4 of 4: check every balance on both nodes", align="left")
    # What has been tried since an earlier demo counts as well: events that are not baskets.
    ledger = loaded.ledger
    comparisons = compare(console, settings, expected_accounts(baskets.events, ledger))
    if any(comparison.differences for comparison in comparisons):
        # Somebody may have sent events since the log was read.
        ledger = read_ledger(settings, TOPIC)
        comparisons = compare(console, settings, expected_accounts(baskets.events, ledger))
    console.print(result_table(expected_accounts(baskets.events), ledger.others, comparisons))
    differences = [difference for comparison in comparisons for difference in comparison.differences]
    for difference in differences[:SHOWN_DIFFERENCES]:
        console.print(
            f"[red]{difference.node}: household {difference.household} should have {difference.expected.amount} "
            f"from {difference.expected.event_count} events, the answer was {difference.answered}[/red]"
        )
    if differences:
        raise typer.Exit(1)
    console.rule(align="left")
    print(places(settings))
    print(NEXT.format(node=f"http://127.0.0.1:{settings.query_ports[0]}"))


NEXT = """
Try next:
  curl -i -X POST {node}/api/balance.addFunds -H 'Content-Type: application/json' -d '{{"customerId": "you", "amount": "5.00"}}'
  curl -i '{node}/api/customers.getBalance?customerId=you'
  ./foldlake status          every process, and how far behind the stream is
  ./foldlake down            stop everything; the data stays
"""


class NotFoldedError(FoldlakeError):
    """The stream did not get to the end of the log in time."""


def wait_until_folded(console: "Console", settings: "Settings", total: int) -> None:
    """Show how many events are folded until all are.

    Raises:
        NotFoldedError: nothing moved for too long.
    """
    from rich.progress import Progress

    from include.stream.status import read_stream_status

    least_behind = total + 1
    moved_at = time.monotonic()
    with Progress(console=console) as progress:
        task = progress.add_task("Folding events", total=total)
        while True:
            status = read_stream_status(settings)
            # Before the driver's first start there is no version, and nothing that could be behind.
            behind = status.events_behind if status.versions else total
            progress.update(task, completed=max(0, total - behind))
            if behind == 0:
                return
            if behind < least_behind:
                least_behind, moved_at = behind, time.monotonic()
            still_s = time.monotonic() - moved_at
            if status.state == "running" and behind < total and still_s > SETTLED_S:
                # After a restart the driver says where it is only when it commits: the comparison decides.
                return
            if still_s > FOLD_TIMEOUT_S:
                raise NotFoldedError(
                    f"The stream has not moved for {FOLD_TIMEOUT_S:.0f} s, {behind} events behind. "
                    "`./foldlake status` and `./foldlake logs stream` say more."
                )
            time.sleep(POLL_INTERVAL_S)


def compare(
    console: "Console", settings: "Settings", expected: "dict[str, Account]"
) -> "list[NodeComparison]":
    """Compare every household on every node; what differs at first is asked again until the last records are there."""
    from rich.progress import Progress

    from demo.baskets.comparison import compare_node

    nodes = [f"http://127.0.0.1:{port}" for port in settings.query_ports]
    comparisons = []
    with Progress(console=console) as progress:
        for node in nodes:
            task = progress.add_task(f"Asking {node}", total=len(expected))
            deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
            while True:
                progress.reset(task)
                comparison = compare_node(node, expected, partial(progress.advance, task))
                if not comparison.differences or time.monotonic() > deadline:
                    break
                time.sleep(POLL_INTERVAL_S)
            comparisons.append(comparison)
    return comparisons


def result_table(
    dataset: "dict[str, Account]", others: "dict[str, Account]", comparisons: "list[NodeComparison]"
) -> "Table":
    """Return the data set's sums, those of other events about its households, and every node's."""
    from rich.table import Table

    table = Table(header_style="bold")
    table.add_column("")
    for column in ("households", "events", "sum of balances", "differences"):
        table.add_column(column, justify="right")
    _add_sums(table, "data set", dataset)
    if later := {household: account for household, account in others.items() if household in dataset}:
        _add_sums(table, "+ other events", later)
    for comparison in comparisons:
        table.add_row(
            comparison.node.removeprefix("http://"),
            f"{comparison.households:,}",
            f"{comparison.event_count:,}",
            f"{comparison.total:,}",
            f"[{'red' if comparison.differences else 'green'}]{len(comparison.differences)}",
        )
    return table


def _add_sums(table: "Table", label: str, accounts: "dict[str, Account]") -> None:
    events = sum(account.event_count for account in accounts.values())
    total = sum((account.amount for account in accounts.values()), Decimal("0.00"))
    table.add_row(label, f"{len(accounts):,}", f"{events:,}", f"{total:,}", "")
