"""Compares the query nodes' answers with the sums in the data set."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus

import httpx

from demo.baskets.dataset import Basket
from demo.baskets.loading import Account, Ledger
from include.nodes.local_nodes import NodeAddress

LOOKUP_TIMEOUT_S = 10.0
PARALLEL_LOOKUPS = 4


@dataclass(frozen=True)
class Difference:
    """A household whose account on a node differs from the expected one; `answered` is the node's answer as text."""

    node: str
    household: str
    expected: Account
    answered: str


@dataclass(frozen=True)
class NodeComparison:
    """The result of comparing every household on one node."""

    node: str
    households: int
    event_count: int
    total: Decimal
    differences: tuple[Difference, ...]


def expected_accounts(baskets: Sequence[Basket], ledger: Ledger | None = None) -> dict[str, Account]:
    """Return household -> sum of its baskets and of the log's other events for that household."""
    accounts: dict[str, Account] = {}
    for basket in baskets:
        accounts.setdefault(str(basket.household_id), Account()).add(Decimal(basket.total_cents).scaleb(-2))
    for customer, other in (ledger.others if ledger else {}).items():
        if account := accounts.get(customer):
            account.amount += other.amount
            account.event_count += other.event_count
    return accounts


def compare_node(
    node: NodeAddress, expected: dict[str, Account], on_answer: Callable[[], None] = lambda: None
) -> NodeComparison:
    """Read every household's balance and state record from a node, and compare both with the expected account.

    Args:
        node: a query node on this machine.
        expected: household -> account.
        on_answer: called after each household.
    """
    with node.client(LOOKUP_TIMEOUT_S) as client:

        def look_up(household: str) -> tuple[Account | None, str]:
            answer = _account(client, household)
            on_answer()
            return answer

        with ThreadPoolExecutor(PARALLEL_LOOKUPS) as pool:
            answers = list(pool.map(look_up, expected))
    differences = [
        Difference(node.name, household, account, text)
        for (household, account), (answered, text) in zip(expected.items(), answers, strict=True)
        if answered != account
    ]
    accounts = [account for account, _ in answers if account]
    return NodeComparison(
        node=node.name,
        households=len(accounts),
        event_count=sum(account.event_count for account in accounts),
        total=sum((account.amount for account in accounts), Decimal("0.00")),
        differences=tuple(differences),
    )


def _account(client: httpx.Client, household: str) -> tuple[Account | None, str]:
    """Return a household's account on the node (None if it has none), and the answer as text for messages."""
    try:
        balance = client.get("/api/customers.getBalance", params={"customerId": household})
        record = client.get(f"/api/read-models/balance/records/{household}")
    except httpx.HTTPError as error:
        return None, repr(error)
    for answer in (balance, record):
        if answer.status_code != HTTPStatus.OK:
            return None, f"{answer.status_code}: {answer.text[:200]}"
    # Decimals are parsed from the text: amounts never pass through a float.
    amount = json.loads(balance.text, parse_float=Decimal)["amount"]
    state = json.loads(record.text, parse_float=Decimal)
    account = Account(amount=Decimal(amount), event_count=int(state["eventCount"]))
    return account, f"{amount} from {state['eventCount']} events"
