"""`./foldlake demo logs`: loads log lines of a web shop, and compares every branch of the system with an oracle."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from demo.logs.comparison import Check, Result
    from include.settings import Settings

LINES = 60_000
# A bot that solves no captcha.
UNSOLVED = "ad0891632773690e"
# Enough for the driver's JVM to start and finish its first batch on a busy machine.
TIMEOUT_S = 600.0
POLL_INTERVAL_S = 1.0

NEXT = """
Try next:
  {curl} -i '{node}/api/products.getViews?productId=product-1'
  {curl} -i '{node}/api/browsers.getActions?browserHash={browser}'
  ./foldlake dead-letters logs         shows the lines that cannot be read
  ./foldlake quality product-views     compares the views with a replay of the lines
  docs/logs.md                         shows how to rename a product, and the report on bots
"""


def run_logs() -> bool:
    """Start the stack with the system `logs`, load its lines, and compare every branch; return whether all are exact."""
    from rich.console import Console

    from cli.display.demo_results import BranchResult, append_to_event_table, branch_table
    from cli.display.start_display import ProgressDisplay, curl, endpoints, first_node
    from cli.systems import change_systems
    from demo.logs.catalogue import SYSTEM
    from demo.logs.comparison import Check
    from demo.logs.lines import log_lines
    from demo.logs.report import TABLE
    from include.settings import Settings
    from stack.lifecycle import start

    console = Console()
    settings = Settings()
    change_systems(settings.home, enable=(SYSTEM.name,))
    console.rule("[bold]1 of 4: start the stack", align="left")
    with ProgressDisplay(console) as display:
        start(settings, listener=display)
    console.rule("[bold]2 of 4: load the catalogue and the log lines", align="left")
    names = load(console, settings)
    console.rule("[bold]3 of 4: compare every branch with the lines", align="left")
    rows = list(compared(console, settings, Check(settings, log_lines(LINES), names)))
    console.rule("[bold]4 of 4: append the browser events to the lake", align="left")
    append_to_event_table(console, settings, TABLE)
    console.print(branch_table(BranchResult(*row[:3], row[3].found, differences(row[3])) for row in rows))
    for name, *_, result in rows:
        if result.examples:
            console.print(f"[red]{name}: different: {', '.join(result.examples)}[/red]")
    console.rule(align="left")
    print(endpoints(settings))
    print(NEXT.format(node=first_node(settings), curl=curl(settings), browser=UNSOLVED))
    return all(result.is_exact for *_, result in rows)


def load(console: "Console", settings: "Settings") -> dict[str, str]:
    """Load the catalogue, unless it has entries, and the lines; return the names that the alerts must have."""
    from rich.progress import Progress

    from demo.log_tables import record_count
    from demo.logs.catalogue import TOPIC, append_entries, first_entries, name_of
    from demo.logs.lines import PRODUCTS, product_id
    from demo.logs.loading import load_lines

    if record_count(settings, TOPIC) == 0:
        append_entries(settings, first_entries())
    began_s = time.monotonic()
    with Progress(console=console) as progress:
        task = progress.add_task("Loading lines", total=LINES)
        appended = load_lines(settings, LINES, lambda done: progress.update(task, completed=done))
    console.print(
        f"Appended {appended:,} lines to topic logs in {time.monotonic() - began_s:.0f} s. They are made up.",
        highlight=False,
    )
    return {product_id(number): name_of(number) for number in range(1, PRODUCTS + 1)}


def compared(
    console: "Console", settings: "Settings", check: "Check"
) -> "Iterable[tuple[str, str, str, Result]]":
    """Yield name, kind, output and comparison of each branch and of each read model on each node, once it no longer improves."""
    from demo.logs.comparison import BRANCHES, STATES
    from demo.state_listing import list_states
    from include.nodes.local_nodes import local_nodes
    from include.waiting import wait_for

    results: dict[tuple[str, str, str], Result] = {}

    def are_exact() -> bool:
        check.read()
        for branch in BRANCHES:
            results[(branch.name, branch.kind, branch.output)] = check.compare(branch)
        for node in local_nodes(settings):
            for name in STATES:
                states = list_states(node, name) or {}
                results[(name, "read model", f"node {node.name}")] = check.compare_states(name, states)
        return all(result.is_exact for result in results.values())

    with console.status("Comparing, until every branch has caught up"):
        wait_for(are_exact, timeout_s=TIMEOUT_S, poll_s=POLL_INTERVAL_S)
    for place, result in results.items():
        yield (*place, result)


def differences(result: "Result") -> str:
    """Return what is wrong with the records of a branch."""
    numbers = {"missing": result.missing, "surplus": result.surplus}
    return ", ".join(f"{number:,} {what}" for what, number in numbers.items() if number)
