"""Views are joined with the catalogue at lookup; a change of the catalogue is in the next answers."""

from datetime import UTC, datetime

import pytest

from demo.logs.catalogue import append_entries, product
from demo.logs.comparison import Check
from include.settings import Settings
from tests.support.http.local_http import HTTP
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(900)]


def answers(settings: Settings, product_id: str) -> list[dict[str, object]]:
    """Return the answer of each node."""
    path, query = "/api/products.getViews", {"productId": product_id}
    found = [HTTP.get(f"http://127.0.0.1:{port}{path}", params=query) for port in settings.query_ports]
    return [answer.json() for answer in found]


def test_every_node_joins_views_with_the_catalogue_and_a_change_needs_no_restart(
    nodes: Settings, check: Check
) -> None:
    counts = dict(check.connection.execute("from expected_counts").fetchall())
    names = dict(check.connection.execute("from catalogue").fetchall())
    # Enough products for every partition and both nodes as owner and as asked.
    some = [f"product-{number}" for number in range(1, 13)]
    for one in some:
        wait_until(
            lambda one=one: (
                [(a["views"], a["name"]) for a in answers(nodes, one)]  # type: ignore[misc]
                == [(counts[one], names[one])] * 2
            ),
            f"views and name of {one}",
            timeout_s=240,
        )

    append_entries(nodes, [product(one, f"new {one}", "renamed", datetime.now(UTC)) for one in some])

    for one in some:
        expected = {"views": counts[one], "name": f"new {one}", "category": "renamed"}
        wait_until(
            lambda one=one, expected=expected: answers(nodes, one) == [expected] * 2,  # type: ignore[misc]
            f"the new name of {one}",
            timeout_s=120,
        )
