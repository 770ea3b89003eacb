"""The tills of a sample of the data set, and the comparison of what every branch made of their events."""

from contextlib import suppress
from decimal import Decimal

from demo.log_tables import record_count
from demo.pos.branches import BRANCHES, LOYALTY, NOTIFICATIONS, Check
from demo.pos.dataset import read_sales
from demo.pos.loading import TOPIC, load
from demo.pos.oracle import RATE
from demo.pos.outputs import look_up_points
from include.errors import FoldlakeError
from include.nodes.local_nodes import NodeAddress, local_nodes
from include.settings import Settings
from include.waiting import wait_for
from tests.support.waiting import wait_until

TIMEOUT_S = 600.0
LOAD_TIMEOUT_S = 300.0
POLL_S = 1.0


class Tills:
    """Sends the oldest invoices. sent: how many of them so far."""

    def __init__(self, settings: Settings) -> None:
        self.sent = 0
        self._settings = settings

    def send(self, invoices: int) -> None:
        """Send further invoices, each once, however often the broker or the registry fails meanwhile."""
        self.sent += invoices
        sales = read_sales(self.sent)

        def is_sent() -> bool:
            with suppress(FoldlakeError):
                load(self._settings, TOPIC, sales)
                return True
            return False

        assert wait_for(is_sent, timeout_s=LOAD_TIMEOUT_S, poll_s=POLL_S), "the invoices could not be sent"

    def check(self, rate: Decimal = RATE) -> Check:
        """Return the comparison with the oracle of what was sent so far."""
        return Check(self._settings, self.sent, rate)

    def wait_until_written(self, check: Check) -> None:
        """Wait until every branch has written as many records as it must."""
        for branch in BRANCHES:
            expected, output = check.expected(branch), branch.output
            wait_until(
                lambda expected=expected, output=output: record_count(self._settings, output) >= expected,  # type: ignore[misc]
                f"{branch.name} has caught up",
                TIMEOUT_S,
                POLL_S,
            )

    def require_points(self, check: Check) -> None:
        """Wait until both nodes answer for every card as the oracle does."""
        for node in local_nodes(self._settings):

            def is_exact(node: NodeAddress = node) -> bool:
                return check.compare_points(node.name, look_up_points(node, check.cards())).is_exact

            wait_until(is_exact, f"{node.name} answers as the oracle does", TIMEOUT_S, POLL_S)

    def notifications(self, rates: tuple[Decimal, ...]) -> list[list[tuple[str, set[Decimal]]]]:
        """Return the notifications of each partition in order: the id, and the rates at which both of its numbers are right.

        Fails unless each notification of these invoices is there once, and is of one of the rates.
        """
        found: dict[str, set[Decimal]] = {}
        for rate in rates:
            check = self.check(rate)
            check.compare(LOYALTY)
            result = check.compare(NOTIFICATIONS)
            assert (result.missing, result.doubled, result.found) == (0, 0, result.expected), result
            connection = check.connection
            right = connection.execute("select id from f except select id from wrong").fetchall()
            for (event_id,) in right:
                found.setdefault(event_id, set()).add(rate)
        places = connection.execute(
            'select partition, id from found_notifications order by partition, "offset"'
        ).fetchall()
        assert [event_id for _, event_id in places if event_id not in found] == []
        partitions: dict[int, list[tuple[str, set[Decimal]]]] = {}
        for partition, event_id in places:
            partitions.setdefault(partition, []).append((event_id, found[event_id]))
        return list(partitions.values())
