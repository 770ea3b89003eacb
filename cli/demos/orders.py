"""`./foldlake demo orders`: simulates the couriers of a city, and compares the active orders on every node with the log."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from demo.orders.couriers import Shift
    from demo.orders.oracle import Location, Oracle
    from include.nodes.local_nodes import NodeAddress
    from include.settings import Settings

ACTIVE = 500
# The couriers have driven for this long when the demo begins: longer than most orders live.
EARLIER = timedelta(minutes=45)
# Enough for the driver's JVM to start and finish its first batch on a busy machine.
ARRIVAL_TIMEOUT_S = 300.0
POLL_INTERVAL_S = 1.0
MS_PER_S = 1000

NEXT = """
Try next:
  {node}/map/order-location            shows the orders on a map, moving while couriers drive
  {curl} -N '{node}/api/read-models/order-location/changes?within=52.48,13.35,52.50,13.40'   the changes in a box
  {curl} -i '{node}/api/orders.getLocation?orderNumber={order}'
  {curl} '{node}/api/read-models/order-location/records?limit=3'
  ./foldlake demo orders --minutes 10  lets them drive again
  ./foldlake dead-letters order-location      shows the updates that came too late
  ./foldlake quality order-location    compares the active orders with a replay of the log
  docs/orders.md                       explains when an order leaves, and where
"""


def run_orders(minutes: float = 1.0) -> bool:
    """Start the stack with the system `orders`, let couriers drive, and compare every node; return whether all are exact.

    minutes: for how long they drive in real time, after three quarters of an hour at once.
    """
    from rich.console import Console

    from cli.display.start_display import ProgressDisplay, curl, endpoints, first_node
    from cli.systems import change_systems
    from demo.orders.couriers import SYSTEM, Shift
    from demo.orders.oracle import Oracle
    from include.nodes.local_nodes import local_nodes
    from include.settings import Settings
    from stack.lifecycle import start

    console = Console()
    settings = Settings()
    change_systems(settings.home, enable=(SYSTEM.name,))
    console.rule("[bold]1 of 3: start the stack", align="left")
    with ProgressDisplay(console) as display:
        start(settings, listener=display)
    console.rule(f"[bold]2 of 3: couriers drive for {minutes:g} min", align="left")
    began = datetime.now(UTC) - EARLIER
    drive(console, settings, Shift.lasting(began, EARLIER + timedelta(minutes=minutes), ACTIVE), minutes)
    console.rule("[bold]3 of 3: compare the active orders on every node with the log", align="left")
    oracle = Oracle(settings)
    expected = oracle.active()
    differing = {node.name: differing_orders(console, node, expected) for node in local_nodes(settings)}
    console.print(result_table(oracle, expected, differing))
    console.rule(align="left")
    print(endpoints(settings))
    order = max(expected, default="")
    print(NEXT.format(node=first_node(settings), curl=curl(settings), order=order))
    return not any(differing.values())


def drive(console: "Console", settings: "Settings", shift: "Shift", minutes: float) -> None:
    """Append the updates of a shift: those before now at once, the others at their times; with a progress bar for each."""
    from rich.progress import Progress

    from demo.orders.couriers import in_real_time, load

    now_ms = round(time.time() * MS_PER_S)
    earlier = [update for update in shift.updates() if update.written_ms < now_ms]
    with Progress(console=console) as progress:
        task = progress.add_task("Loading the last 45 minutes", total=len(earlier))
        load(settings, earlier, lambda done: progress.update(task, completed=done))
        task = progress.add_task("Driving", total=minutes * 60)
        began_s = time.monotonic()
        updates = (update for update in shift.updates() if update.written_ms >= now_ms)
        until_ms = round((time.time() + minutes * 60) * MS_PER_S)
        load(
            settings,
            in_real_time(updates, until_ms),
            lambda _: progress.update(task, completed=time.monotonic() - began_s),
        )
        progress.update(task, completed=minutes * 60)


def differing_orders(console: "Console", node: "NodeAddress", expected: "dict[str, Location]") -> set[str]:
    """Return the orders of which a node has another location, none, or one too many, once it no longer changes."""
    from demo.orders.lookups import list_active
    from include.waiting import wait_for

    found: set[str] = set(expected)

    def is_exact() -> bool:
        nonlocal found
        listed = list_active(node)
        if listed is not None:
            found = {key for key in listed.keys() | expected.keys() if listed.get(key) != expected.get(key)}
        return listed is not None and not found

    with console.status(f"Comparing node {node.name}"):
        wait_for(is_exact, timeout_s=ARRIVAL_TIMEOUT_S, poll_s=POLL_INTERVAL_S)
    return found


def result_table(
    oracle: "Oracle", expected: "dict[str, Location]", differing: "dict[str, set[str]]"
) -> "Table":
    """Return a table of what the log has, and of each node."""
    from rich import box
    from rich.table import Table

    counts = oracle.counts()
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("what", no_wrap=True)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_column("result")
    table.add_row("orders on the log", f"{counts.orders:,}", "")
    table.add_row("updates folded", f"{counts.accepted:,}", "")
    table.add_row("updates too late: dead letters", f"{counts.late:,}", "")
    table.add_row("orders that have ended, and left", f"{counts.ended:,}", "")
    for node, orders in differing.items():
        verdict = (
            f"[red]{len(orders):,} differ: {', '.join(sorted(orders)[:3])}" if orders else "[green]exact"
        )
        table.add_row(f"active orders on node {node}", f"{len(expected):,}", verdict)
    return table
