"""Compares what the query nodes answer with what the data set itself adds up to."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus

import httpx

from demo.baskets.dataset import Basket
from demo.baskets.ledger import Account, Ledger

LOOKUP_TIMEOUT_S = 10.0
LOOKUPS_AT_ONCE = 4


@dataclass(frozen=True)
class Difference:
    """A household for which a node's answer is not the expected one."""

    node: str
    household: str
    expected: Account
    answered: str


@dataclass(frozen=True)
class NodeComparison:
    """What came of asking one node for every household."""

    node: str
    households: int
    event_count: int
    total: Decimal
    differences: tuple[Difference, ...]


def expected_accounts(baskets: Sequence[Basket], ledger: Ledger | None = None) -> dict[str, Account]:
    """Add up every household's baskets, and what other events of the log say of the same households."""
    accounts: dict[str, Account] = {}
    for basket in baskets:
        accounts.setdefault(str(basket.household_id), Account()).add(Decimal(basket.total_cents).scaleb(-2))
    for customer, other in (ledger.others if ledger else {}).items():
        if account := accounts.get(customer):
            account.amount += other.amount
            account.event_count += other.event_count
    return accounts


def compare_node(
    node: str, expected: dict[str, Account], on_answer: Callable[[], None] = lambda: None
) -> NodeComparison:
    """Ask a node for every household's balance and state record, and compare both with the expected account.

    Args:
        node: base URL of a query node.
        expected: by household.
        on_answer: told of every household that was asked for.
    """
    with httpx.Client(base_url=node, timeout=LOOKUP_TIMEOUT_S, trust_env=False) as client:

        def ask(household: str) -> tuple[Account | None, str]:
            answer = _ask(client, household)
            on_answer()
            return answer

        with ThreadPoolExecutor(LOOKUPS_AT_ONCE) as pool:
            answers = list(pool.map(ask, expected))
    differences = [
        Difference(node, household, account, said)
        for (household, account), (answered, said) in zip(expected.items(), answers, strict=True)
        if answered != account
    ]
    accounts = [account for account, _ in answers if account]
    return NodeComparison(
        node=node,
        households=len(accounts),
        event_count=sum(account.event_count for account in accounts),
        total=sum((account.amount for account in accounts), Decimal("0.00")),
        differences=tuple(differences),
    )


def _ask(client: httpx.Client, household: str) -> tuple[Account | None, str]:
    """Return the node's account of a household, and its answer in words for when there is none or it is another."""
    try:
        balance = client.get("/api/customers.getBalance", params={"customerId": household})
        record = client.get(f"/api/read-models/balance/records/{household}")
    except httpx.HTTPError as error:
        return None, repr(error)
    for answer in (balance, record):
        if answer.status_code != HTTPStatus.OK:
            return None, f"{answer.status_code}: {answer.text[:200]}"
    # Decimals from the text itself: money never passes through a float.
    amount = json.loads(balance.text, parse_float=Decimal)["amount"]
    state = json.loads(record.text, parse_float=Decimal)
    account = Account(amount=Decimal(amount), event_count=int(state["event_count"]))
    return account, f"{amount} from {state['event_count']} events"
