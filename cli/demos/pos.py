"""`./foldlake demo pos`: loads a year of invoices, and compares every branch of the system with an oracle."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.errors import FoldlakeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.progress import Progress

    from demo.pos.branches import Branch, Check, Result
    from demo.pos.dataset import Sales
    from include.nodes.local_nodes import NodeAddress
    from include.settings import Settings

# Enough for the driver's JVM to start and finish its first batch on a busy machine.
STANDSTILL_S = 300.0
# Folded records reach the nodes within milliseconds; under load, the last ones may take longer.
ARRIVAL_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 1.0


NEXT = """
Try next:
  {curl} -i '{node}/api/loyalty.getPoints?cardNumber={card}'
  ./foldlake status                    shows how far each branch is
  ./foldlake quality loyalty           compares the points with a replay of the invoices
  ./foldlake systems --disable pos     disables the system at the next ./foldlake up; what it has written is kept
  docs/pos.md                          shows how to change the rate, and queries of line items
"""


class BranchStandstillError(FoldlakeError):
    """The branches have stopped before they have written what they must."""


@dataclass(frozen=True)
class Row:
    """A line of the table: a branch or a store, and its comparison."""

    name: str
    kind: str
    output: str
    result: "Result"


def run_pos(first: int = 0) -> bool:
    """Start the stack with the system `pos`, load its events, and compare every branch; return whether all are exact.

    first: the number of the oldest invoices to load; 0 for all.
    """
    from rich.console import Console

    from cli.display.demo_results import BranchResult, append_to_event_table, branch_table
    from cli.display.start_display import ProgressDisplay, curl, endpoints, first_node
    from cli.systems import change_systems
    from demo.pos.branches import Check
    from demo.pos.dataset import SYSTEM, read_sales
    from demo.pos.outputs import trend_declaration
    from include.settings import Settings
    from stack.lifecycle import start

    console = Console()
    settings = Settings()
    change_systems(settings.home, enable=(SYSTEM.name,))
    console.rule("[bold]1 of 5: start the stack", align="left")
    with ProgressDisplay(console) as display:
        start(settings, listener=display)
    console.rule("[bold]2 of 5: load the invoices", align="left")
    load_with_progress(console, settings, read_sales(first))
    check = Check(settings, first)
    console.rule("[bold]3 of 5: wait for the branches", align="left")
    wait_until_written(console, settings, check)
    console.rule("[bold]4 of 5: append the line items to the lake", align="left")
    append_to_event_table(console, settings, trend_declaration().name)
    console.rule("[bold]5 of 5: compare every branch with the data set", align="left")
    rows = [
        *compare_branches(console, check),
        Row("trend", "event table", "lake/trend", check.compare_table()),
        *compare_nodes(console, settings, check),
    ]
    console.print(
        branch_table(
            BranchResult(row.name, row.kind, row.output, row.result.found, differences(row.result))
            for row in rows
        )
    )
    for row in rows:
        if row.result.examples:
            console.print(f"[red]{row.name}: different: {', '.join(row.result.examples)}[/red]")
    console.rule(align="left")
    print(endpoints(settings))
    print(NEXT.format(node=first_node(settings), curl=curl(settings), card=check.cards()[0]))
    return all(row.result.is_exact for row in rows)


def load_with_progress(console: "Console", settings: "Settings", sales: "Sales") -> None:
    """Load the events of the tills with a progress bar, and print the result."""
    from rich.progress import Progress

    from demo.pos.dataset import till_events
    from demo.pos.loading import TOPIC, load

    began_s = time.monotonic()
    with Progress(console=console) as progress:
        task = progress.add_task("Loading events", total=len(till_events(sales)))
        result = load(settings, TOPIC, sales, lambda done: progress.update(task, completed=done))
    console.print(
        f"Appended {result.appended:,} events to topic {TOPIC} in {time.monotonic() - began_s:.0f} s; {result.present:,} were already "
        "there. Cards, telephone numbers and addresses are made up.",
        highlight=False,
        soft_wrap=True,
    )


def wait_until_written(console: "Console", settings: "Settings", check: "Check") -> None:
    """Wait until every branch has written as many records as it must, with a progress bar for each.

    Raises:
        BranchStandstillError: no branch has written anything for too long.
    """
    import math

    from rich.progress import Progress

    from demo.log_tables import record_count
    from demo.pos.branches import BRANCHES
    from include.waiting import wait_for

    written: dict[str, int] = {}
    advanced_at_s = time.monotonic()
    with Progress(console=console) as progress:
        tasks = {
            branch.name: progress.add_task(branch.name, total=check.expected(branch)) for branch in BRANCHES
        }

        def is_written() -> bool:
            nonlocal written, advanced_at_s
            now = {branch.name: record_count(settings, branch.output) for branch in BRANCHES}
            if now != written:
                written, advanced_at_s = now, time.monotonic()
            for name, count in now.items():
                progress.update(tasks[name], completed=count)
            behind = [branch.name for branch in BRANCHES if now[branch.name] < check.expected(branch)]
            if behind and time.monotonic() - advanced_at_s > STANDSTILL_S:
                raise BranchStandstillError(
                    f"{', '.join(behind)}: nothing was written for {STANDSTILL_S:.0f} s. Hint: see `./foldlake status` and "
                    "`./foldlake logs stream`."
                )
            return not behind

        wait_for(is_written, timeout_s=math.inf, poll_s=POLL_INTERVAL_S)


def compare_branches(console: "Console", check: "Check") -> "Iterable[Row]":
    """Compare what each branch has written."""
    from rich.progress import Progress

    from demo.pos.branches import BRANCHES

    with Progress(console=console) as progress:
        for branch in BRANCHES:
            yield _compared(progress, check, branch)


def _compared(progress: "Progress", check: "Check", branch: "Branch") -> Row:
    task = progress.add_task(f"Comparing {branch.name}", total=check.expected(branch))
    result = check.compare(branch, lambda: progress.advance(task))
    return Row(branch.name, branch.kind, branch.output, result)


def compare_nodes(console: "Console", settings: "Settings", check: "Check") -> "Iterable[Row]":
    """Look up the points of every card on every node; repeat while answers differ, until the last records must have arrived."""
    from rich.progress import Progress

    from include.nodes.local_nodes import local_nodes

    cards = check.cards()
    with Progress(console=console) as progress:
        for node in local_nodes(settings):
            result = _compared_node(progress, check, node, cards)
            yield Row("loyalty", "read model", f"node {node.name}", result)


def _compared_node(progress: "Progress", check: "Check", node: "NodeAddress", cards: "list[str]") -> "Result":
    from demo.pos.outputs import look_up_points
    from include.waiting import wait_for

    task = progress.add_task(f"Comparing {node.name}", total=len(cards))
    results: list[Result] = []

    def is_exact() -> bool:
        progress.reset(task)
        states = look_up_points(node, cards, lambda: progress.advance(task))
        results.append(check.compare_points(node.name, states))
        return results[-1].is_exact

    wait_for(is_exact, timeout_s=ARRIVAL_TIMEOUT_S, poll_s=POLL_INTERVAL_S)
    return results[-1]


def differences(result: "Result") -> str:
    """Return what is wrong with the records of a branch."""
    numbers = {"missing": result.missing, "doubled": result.doubled, "wrong": result.wrong}
    return ", ".join(f"{number:,} {what}" for what, number in numbers.items() if number)
