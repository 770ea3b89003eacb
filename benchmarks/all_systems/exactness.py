"""Compares what every system has written, and what both nodes answer, with oracles that do not use Foldlake's folds."""

from collections.abc import Iterator, Sequence

from benchmarks.all_systems.loads import Loads
from benchmarks.pos.exactness import require_exact
from benchmarks.support.deposits import Deposits, folded
from demo.logs.catalogue import name_of
from demo.logs.comparison import BRANCHES, STATES, Check
from demo.logs.lines import PRODUCTS, log_lines, product_id
from demo.orders.lookups import list_active
from demo.orders.oracle import Oracle
from demo.pos.branches import Check as PosCheck
from demo.pos.outputs import look_up_points
from demo.state_listing import list_states
from include.nodes.local_nodes import NodeAddress, local_nodes
from include.settings import Settings
from tests.support.waiting import wait_until

TIMEOUT_S = 600.0


def require_all_exact(settings: Settings, loads: Loads, probes: Deposits, invoices: int) -> Iterator[str]:
    """Wait until each system is exact on its topics and on both nodes; yield a line about each.

    Raises AssertionError or a timeout if one stays different.
    """
    nodes = local_nodes(settings)
    balances = loads.deposits.deposits.expected() | probes.expected()
    wait_until(lambda: folded(settings)[0] == balances, "all balances are exact", TIMEOUT_S)
    yield f"balance: {sum(count for count, _ in balances.values()):,} events of {len(balances):,} customers"

    pos = PosCheck(settings, invoices)
    require_exact(settings, pos)
    wait_until(lambda: _points_are_exact(pos, nodes), "all points are exact", TIMEOUT_S)
    yield f"pos: {len(loads.tills.ids):,} events of tills in all branches, points of {len(pos.cards()):,} cards on both nodes"

    oracle = Oracle(settings)
    active, counts = oracle.active(), oracle.counts()
    wait_until(lambda: all(list_active(node) == active for node in nodes), "all orders are exact", TIMEOUT_S)
    yield f"orders: {loads.updates:,} updates, {counts.orders:,} orders, {len(active):,} active on both nodes, {counts.late:,} updates too late"

    names = {product_id(number): name_of(number) for number in range(1, PRODUCTS + 1)}
    check = Check(settings, log_lines(loads.lines), names)
    wait_until(lambda: _logs_are_exact(check, nodes), "all branches of logs are exact", TIMEOUT_S, poll_s=2.0)
    yield f"logs: {loads.lines:,} lines in {len(BRANCHES)} branches, {len(STATES)} read models on both nodes"


def _logs_are_exact(check: Check, nodes: Sequence[NodeAddress]) -> bool:
    check.read()
    return all(check.compare(branch).is_exact for branch in BRANCHES) and all(
        check.compare_states(name, list_states(node, name) or {}).is_exact
        for node in nodes
        for name in STATES
    )


def _points_are_exact(check: PosCheck, nodes: Sequence[NodeAddress]) -> bool:
    cards = check.cards()
    return all(check.compare_points(node.name, look_up_points(node, cards)).is_exact for node in nodes)
