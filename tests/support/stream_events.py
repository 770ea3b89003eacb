"""Random events for the tests of the stream, and an oracle for their fold."""

import json
import random
from collections import Counter
from decimal import Decimal

import httpx

from include.declarations.load import read_model
from include.read_models.balance.events import FundsAdded, FundsWithdrawn
from include.settings import Settings
from tests.support.http.local_http import http_client
from tests.support.stream_process import ChangelogProgress, states

BALANCE = read_model("balance")
CHANGELOG = "balance.v1.changelog"
RANDOM = random.Random(20261121)


def random_event(customers: int = 500) -> FundsAdded:
    """Return one event of a random customer; one in five is a withdrawal."""
    event_type = FundsWithdrawn if RANDOM.random() < 0.2 else FundsAdded
    cents = RANDOM.randrange(1, 100_000)
    return event_type(
        customerId=f"customer-{RANDOM.randrange(customers)}", amount=Decimal(cents) / Decimal(100)
    )


class Ledger:
    """The expected balances after all events appended so far.

    With `settings`, it starts from the records that earlier tests on the same Kafka have left.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        existing = {} if settings is None else states(settings, BALANCE, CHANGELOG)
        self.amounts: dict[str, Decimal] = {key: record.state["amount"] for key, record in existing.items()}
        self.counts = Counter({key: record.event_count for key, record in existing.items()})
        self._progress: dict[str, ChangelogProgress] = {}

    def add(self, event: FundsAdded) -> FundsAdded:
        """Add an event to the expected balances; returns the event."""
        sign = -1 if isinstance(event, FundsWithdrawn) else 1
        self.amounts[event.customerId] = self.amounts.get(event.customerId, Decimal(0)) + sign * event.amount
        self.counts[event.customerId] += 1
        return event

    def random_events(self, number: int) -> list[FundsAdded]:
        """Return new random events, already added."""
        return [self.add(random_event()) for _ in range(number)]

    @property
    def events(self) -> int:
        """The total number of events."""
        return self.counts.total()

    def folded(self, settings: Settings, changelog_topic: str = CHANGELOG) -> int:
        """Return the number of events that the changelog contains so far; cheap enough to poll."""
        if changelog_topic not in self._progress:
            self._progress[changelog_topic] = ChangelogProgress(settings, BALANCE, changelog_topic)
        return self._progress[changelog_topic].event_count()

    def is_folded(self, settings: Settings, changelog_topic: str = CHANGELOG) -> bool:
        """Whether the changelog contains as many events as were added."""
        return self.folded(settings, changelog_topic) == self.events

    def assert_exact(self, settings: Settings, changelog_topic: str = CHANGELOG) -> None:
        """Assert that every balance and event count equals the ledger's; reads the whole changelog."""
        found = states(settings, BALANCE, changelog_topic)
        assert {key: record.state["amount"] for key, record in found.items()} == self.amounts
        assert {key: record.event_count for key, record in found.items()} == dict(self.counts)

    def is_answered(self, settings: Settings) -> bool:
        """Whether every query node returns each customer's expected balance; stops at the first that does not."""
        with http_client(timeout_s=5, keep_alive=True) as client:
            for port in settings.query_ports:
                url = f"http://127.0.0.1:{port}/api/customers.getBalance"
                for customer, amount in self.amounts.items():
                    try:
                        response = client.get(url, params={"customerId": customer})
                    except httpx.HTTPError:
                        return False
                    if not response.is_success:
                        return False
                    if json.loads(response.text, parse_float=Decimal)["amount"] != amount:
                        return False
        return True
