"""Commands to the nodes of a project, and what both nodes answer."""

import json
from decimal import Decimal
from http import HTTPStatus

from tests.support.compose.project import Project
from tests.support.waiting import wait_until

FOLD_S = 120.0
CUSTOMER = "777777"


def balance(project: Project, number: int, customer: str = CUSTOMER, *, offset: str | None = None) -> Decimal:
    parameters = {"customerId": customer} | ({} if offset is None else {"minOffset": offset})
    with project.node(number) as client:
        answer = client.get("/api/customers.getBalance", params=parameters)
    answer.raise_for_status()
    return Decimal(json.loads(answer.text, parse_float=str)["amount"])


def is_folded(project: Project, customer: str) -> bool:
    for number in (1, 2):
        with project.node(number) as client:
            if not client.get("/api/customers.getBalance", params={"customerId": customer}).is_success:
                return False
    return balance(project, 1, customer) == balance(project, 2, customer)


def add_funds(project: Project, amount: str, timeout_s: float = FOLD_S) -> None:
    """Send a command to node 1, and wait until both nodes have folded it."""
    with project.node(1) as client:
        sent = client.post("/api/balance.addFunds", json={"customerId": CUSTOMER, "amount": amount})
    assert sent.status_code == HTTPStatus.ACCEPTED, sent.text
    offset = str(sent.json()["position"]["offset"])
    for number in (1, 2):
        wait_until(
            lambda number=number: balance(project, number, offset=offset) > 0,  # type: ignore[misc]
            f"node {number} has folded it",
            timeout_s,
        )
