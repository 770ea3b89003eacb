"""`./foldlake demo`: loads a year of purchases at a real grocer, and checks every resulting balance."""

import math
import time
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from include.errors import FoldlakeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.progress import TaskID
    from rich.table import Table

    from demo.baskets.comparison import NodeComparison
    from demo.baskets.loading import Account
    from include.nodes.local_nodes import NodeAddress
    from include.settings import Settings

# Enough for the driver's JVM to start and finish its first batch on a busy machine.
FOLD_TIMEOUT_S = 300.0
# A stream in real-time mode that lags advances many times within this interval.
SETTLED_S = 15.0
# Folded records reach the nodes within milliseconds; under load, the last ones may take longer.
ARRIVAL_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.5
SHOWN_DIFFERENCES = 10


def run(
    system: Annotated[
        str, typer.Argument(help="A system to run instead of the balances: logs, orders or pos.")
    ] = "",
    minutes: Annotated[
        float, typer.Option(min=0.1, help="With orders: for how long couriers drive in real time.")
    ] = 1.0,
) -> None:
    """Start the stack, load a year of purchases at a real grocer, and check every household's balance to the cent.

    Appends 155,370 purchases of 2,469 households as events, folds them, and compares both query nodes' answers with the
    data set.

    With `pos`, appends the invoices of the same purchases, with 1,469,307 line items, and compares every branch of the system: shipments,
    line items for analysts, loyalty points and notifications.

    With `orders`, simulates the couriers of a city, some of whose updates are late, doubled or out of order, and compares the active
    orders on both nodes with the log.

    With `logs`, appends log lines of a web shop, and compares product views, alerts, browser actions and captcha requests with them.

    The stack keeps running afterwards. A second run loads nothing, and repeats the check.

    Examples:
      ./foldlake demo

      ./foldlake demo pos

      ./foldlake demo orders --minutes 5
    """
    if system:
        run_system(system, minutes)
    else:
        run_balances()


def run_system(name: str, minutes: float) -> None:
    """Run the demo of a system; ends with exit code 1 if a result differs. Raises UnknownSystemError.

    minutes: for how long a simulation runs in real time.
    """
    from cli.demos.logs import run_logs
    from cli.demos.orders import run_orders
    from cli.demos.pos import run_pos

    systems: dict[str, Callable[[], bool]] = {
        "logs": run_logs,
        "orders": partial(run_orders, minutes),
        "pos": run_pos,
    }
    if name not in systems:
        raise UnknownSystemError(f"There is no demo of a system {name!r}. Available: {', '.join(systems)}.")
    if not systems[name]():
        raise typer.Exit(1)


def run_balances() -> None:
    """Run the demo of the balances; ends with exit code 1 if one differs."""
    from rich.console import Console

    from cli.display.start_display import ProgressDisplay, curl, endpoints, first_node
    from cli.load import TOPIC, load_with_progress
    from demo.baskets.comparison import expected_accounts
    from demo.baskets.dataset import read_baskets
    from demo.baskets.loading import read_ledger
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
    # Other events, such as those sent after an earlier demo, are included.
    ledger = loaded.ledger
    comparisons = compare(console, settings, expected_accounts(baskets.events, ledger))
    if any(comparison.differences for comparison in comparisons):
        # More events may have been sent since the log was read.
        ledger = read_ledger(settings.kafka_connection, settings.registry.connection, TOPIC)
        comparisons = compare(console, settings, expected_accounts(baskets.events, ledger))
    console.print(result_table(expected_accounts(baskets.events), ledger.others, comparisons))
    differences = [difference for comparison in comparisons for difference in comparison.differences]
    for difference in differences[:SHOWN_DIFFERENCES]:
        console.print(
            f"[red]{difference.node}: household {difference.household}: expected {difference.expected.amount} from "
            f"{difference.expected.event_count} events, got {difference.answered}[/red]"
        )
    if differences:
        raise typer.Exit(1)
    console.rule(align="left")
    print(endpoints(settings))
    print(NEXT.format(node=first_node(settings), curl=curl(settings)))


NEXT = """
Try next:
  {node}/   shows all of it in a browser
  {curl} -i -X POST {node}/api/balance.addFunds -H 'Content-Type: application/json' -d '{{"customerId": "you", "amount": "5.00"}}'
  {curl} -i '{node}/api/customers.getBalance?customerId=you'
  ./foldlake status          shows every process, and the stream's lag
  ./foldlake down            stops everything; the data is kept
"""


class UnknownSystemError(FoldlakeError):
    """There is no demo of this name."""


class NotFoldedError(FoldlakeError):
    """The stream stopped making progress before it reached the end of the log."""


class _Advance:
    """Tracks whether the stream is still advancing, and since when it is not."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._least_behind = total + 1
        self._advanced_at_s = time.monotonic()

    def is_settled(self, behind: int, state: str) -> bool:
        """Whether the wait is over; raises NotFoldedError when the stream has not advanced for too long."""
        if behind < self._least_behind:
            self._least_behind, self._advanced_at_s = behind, time.monotonic()
        still_s = time.monotonic() - self._advanced_at_s
        if still_s > FOLD_TIMEOUT_S:
            raise NotFoldedError(
                f"The stream has not advanced for {FOLD_TIMEOUT_S:.0f} s and is {behind} events behind. "
                "Hint: see `./foldlake status` and `./foldlake logs stream`."
            )
        # After a restart, the driver publishes its position only when it commits, so the comparison decides instead.
        return behind == 0 or (state == "running" and behind < self._total and still_s > SETTLED_S)


def wait_until_folded(console: "Console", settings: "Settings", total: int) -> None:
    """Wait until all events are folded, with a progress bar.

    Raises:
        NotFoldedError: the stream has not advanced for too long.
    """
    from rich.progress import Progress

    from include.status.flow_status import FlowKind
    from include.status.measurement import read_stream_status
    from include.waiting import wait_for

    advance = _Advance(total)
    with Progress(console=console) as progress:
        task = progress.add_task("Folding events", total=total)

        def is_folded() -> bool:
            status = read_stream_status(settings)
            # Before the driver's first start, there is no version and therefore no lag.
            behind = status.events_behind if status.of_kind(FlowKind.FOLD) else total
            progress.update(task, completed=max(0, total - behind))
            return advance.is_settled(behind, status.state)

        wait_for(is_folded, timeout_s=math.inf, poll_s=POLL_INTERVAL_S)


def compare(
    console: "Console", settings: "Settings", expected: "dict[str, Account]"
) -> "list[NodeComparison]":
    """Compare every household on every node; repeat while answers differ, until the last records must have arrived."""
    from rich.progress import Progress

    from demo.baskets.comparison import compare_node
    from include.nodes.local_nodes import local_nodes
    from include.waiting import wait_for

    comparisons: dict[str, NodeComparison] = {}
    with Progress(console=console) as progress:
        for node in local_nodes(settings):
            task = progress.add_task(f"Comparing {node.name}", total=len(expected))

            def is_equal(node: "NodeAddress" = node, task: "TaskID" = task) -> bool:
                progress.reset(task)
                comparisons[node.name] = compare_node(node, expected, partial(progress.advance, task))
                return not comparisons[node.name].differences

            wait_for(is_equal, timeout_s=ARRIVAL_TIMEOUT_S, poll_s=POLL_INTERVAL_S)
    return list(comparisons.values())


def result_table(
    dataset: "dict[str, Account]", others: "dict[str, Account]", comparisons: "list[NodeComparison]"
) -> "Table":
    """Return a table of sums: of the data set, of other events of its households, and of every node."""
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
            comparison.node,
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
