"""Deposits, the receipts that the emission of these tests must write for them, and those that it has written."""

import io
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Event, Lock

import fastavro
from confluent_kafka import Message

from include.declarations.load import load_catalog
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.wire_format import HEADER_BYTES
from include.position import Offsets
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.versions.registry import VersionRegistry, change
from include.versions.transitions import Transition, hand_over, register
from tests.support.stream_process import EventSource, records_of
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[2] / "support" / "read_models_with_emissions"
CATALOG = load_catalog((DECLARATIONS,))
EMISSION = CATALOG.emissions["receipts"]
SOURCE = CATALOG.models["savings"].source_topic
EVENTS_PER_ROUND = 2_500
EVENTS_PER_S = 200
START = datetime(2026, 1, 1, tzinfo=UTC)
BONUS = {1: Decimal(0), 2: Decimal(1)}
# A first version has the newest fold; the candidate of these tests has the one before.
FIRST, CANDIDATE = 2, 1


@dataclass(frozen=True)
class Receipt:
    """What the emission has to write for a deposit, by fold revision where it matters."""

    customer: str
    amount: Decimal
    deposits: int
    totals: dict[int, Decimal]


def amount_of(number: int) -> Decimal:
    """Return the amount of the deposit with this number."""
    return Decimal("0.50") if number % 10 == 0 else Decimal(number % 1_000 + 4) / 4


def customer_of(number: int) -> str:
    """Return the customer of the deposit with this number: every third one is a new customer."""
    return f"customer-{number if number % 3 == 0 else number * 7919 % 1009}"


@dataclass
class Deposits:
    """Appends deposits to the source, and knows the receipt of each."""

    source: EventSource
    events: list[FundsAdded] = field(default_factory=list)
    expected: dict[str, Receipt] = field(default_factory=dict)
    _sums: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    _counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _number: int = 0
    _lock: Lock = field(default_factory=Lock)

    def append(self, count: int) -> None:
        """Append deposits, every tenth of which is too small for a receipt."""
        with self._lock:
            self.source.append([self._next() for _ in range(count)])

    def from_here(self, count: int) -> "Deposits":
        """Append deposits; return the receipts that a version must write for them that has folded none before."""
        with self._lock:
            later = Deposits(self.source, _number=self._number)
        self.append(count)
        for _ in range(count):
            later._next()
        return later

    @property
    def count(self) -> int:
        """The number of deposits so far, which are numbered from 1."""
        with self._lock:
            return self._number

    def _next(self) -> FundsAdded:
        self._number += 1
        number = self._number
        event = FundsAdded(
            customerId=customer_of(number),
            amount=amount_of(number).quantize(Decimal("0.01")),
            id=str(number),
            occurredOn=START + timedelta(hours=number % 240),
        )
        return self.add(event)

    def add(self, event: FundsAdded) -> FundsAdded:
        """Add a deposit that was appended elsewhere."""
        customer = event.customerId
        self.events.append(event)
        self._sums[customer] += event.amount
        self._counts[customer] += 1
        if event.amount >= 1:
            count = self._counts[customer]
            totals = {revision: self._sums[customer] + bonus * count for revision, bonus in BONUS.items()}
            self.expected[event.id] = Receipt(customer, event.amount, count, totals)
        return event


def written(settings: Settings, topic: str = EMISSION.output_topic) -> int:
    consumer = log_consumer(settings.kafka_connection)
    try:
        return sum(end_offsets(consumer, topic, EMISSION.output_partitions(settings.topics)))
    except KafkaUnavailableError:
        return 0  # the topic does not exist yet
    finally:
        consumer.close()


def wait_for_more(settings: Settings, before: int) -> None:
    wait_until(lambda: written(settings) > before, "receipts are written", timeout_s=120)


def decoded(message: Message) -> dict[str, object]:
    """Return the receipt in a record."""
    schema = fastavro.parse_schema(EMISSION.output_schema.parsed())
    record = fastavro.schemaless_reader(io.BytesIO((message.value() or b"")[HEADER_BYTES:]), schema, None)
    assert isinstance(record, dict)
    assert message.key() == record["customer"].encode()
    return record


def receipts(settings: Settings, topic: str = EMISSION.output_topic) -> list[dict[str, object]]:
    """Return the receipts in a topic, one partition after the other."""
    return [decoded(message) for message in records_of(settings, topic)]


def require_exact(settings: Settings, deposits: Deposits, revisions: set[int]) -> None:
    """Wait until the emission has caught up; fail unless every receipt is there once, is right, and is in its customer's order."""
    wait_until(lambda: written(settings) >= len(deposits.expected), "all receipts are written", timeout_s=240)
    counts: dict[str, int] = defaultdict(int)
    seen = set()
    for record in receipts(settings):
        expected = deposits.expected[str(record["id"])]
        assert record["id"] not in seen, f"receipt {record['id']} was written twice"
        seen.add(record["id"])
        revision = record["revision"]
        assert isinstance(revision, int)
        assert revision in revisions
        assert (record["customer"], record["amount"], record["deposits"], record["total"]) == (
            expected.customer,
            expected.amount,
            expected.deposits,
            expected.totals[revision],
        )
        assert expected.deposits > counts[expected.customer], "not in the customer's order"
        counts[expected.customer] = expected.deposits
    assert seen == deposits.expected.keys()


def change_versions(settings: Settings, *transitions: Transition) -> None:
    with VersionRegistry(settings.kafka_connection) as registry:
        for transition in transitions:
            change(registry, "savings", transition)


def moves(transition: Callable[..., object], number: int) -> Transition:
    """Return a transition that makes a version live."""
    now = datetime.now(UTC)
    return partial(transition, number=number, now=now, retire_live_after=now + timedelta(days=1))  # type: ignore[return-value]  # of either kind


def start_candidate(settings: Settings, revision: int = CANDIDATE, starts: Offsets | None = None) -> int:
    """Add a version with this fold revision as a candidate; return its number. starts: as for `register`."""
    now = datetime.now(UTC)
    with VersionRegistry(settings.kafka_connection) as registry:
        number = len(registry.read()["savings"].versions) + 1
    change_versions(
        settings,
        partial(
            register,
            run_id=f"run {number}",
            reason="a test",
            fold_revision=revision,
            now=now,
            starts=starts,
        ),
        partial(hand_over, number=number),
    )
    return number


def wait_for_revision(settings: Settings, revision: int) -> None:
    """Wait until the newest receipts for consumers are of a fold revision."""

    def has_come() -> bool:
        found = receipts(settings)
        return bool(found) and found[-1]["revision"] == revision

    wait_until(has_come, f"receipts of revision {revision}", timeout_s=180)


class Load:
    """Appends deposits at EVENTS_PER_S while its block runs."""

    def __init__(self, deposits: Deposits) -> None:
        self._deposits = deposits
        self._is_over = Event()
        self._pool = ThreadPoolExecutor(1, "load")

    def _run(self) -> None:
        while not self._is_over.wait(0.1):
            self._deposits.append(EVENTS_PER_S // 10)

    def __enter__(self) -> None:
        """Start."""
        self._loading = self._pool.submit(self._run)

    def __exit__(self, *_error: object) -> None:
        """Stop."""
        self._is_over.set()
        self._loading.result()
        self._pool.shutdown()
