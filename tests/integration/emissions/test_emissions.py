"""An emission writes one record for each event with the state after it, once and in order, whatever is killed or promoted."""

import io
import os
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from threading import Event, Lock

import fastavro
import pytest

from include.declarations.catalog import load_catalog
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.wire_format import HEADER_BYTES
from include.read_models.balance.events import FundsAdded
from include.rebuild.retirement import retire_version
from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.stream.status import read_stream_status
from include.versions.registry import VersionRegistry
from include.versions.transitions import Transition, change, hand_over, promote, register, roll_back
from tests.integration.emissions.conftest import DECLARATIONS
from tests.support.stream_process import EventSource, make_topics, records_of
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

CATALOG = load_catalog((DECLARATIONS,))
EMISSION = CATALOG.emissions["receipts"]
SOURCE = CATALOG.models["savings"].source_topic
KILLS = 2
MANY_KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "20"))
LONGEST_RUN_S = 14.0
EVENTS_PER_S = 200
EVENTS_PER_ROUND = 2_500
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


@dataclass
class Deposits:
    """Appends deposits to the source, and knows the receipt of each."""

    source: EventSource
    expected: dict[str, Receipt] = field(default_factory=dict)
    _sums: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    _counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _number: int = 0
    _lock: Lock = field(default_factory=Lock)

    def append(self, count: int) -> None:
        """Append deposits, every tenth of which is too small for a receipt."""
        with self._lock:
            self.source.append([self._next() for _ in range(count)])

    def _next(self) -> FundsAdded:
        self._number += 1
        number = self._number
        amount = Decimal("0.50") if number % 10 == 0 else Decimal(number % 1_000 + 4) / 4
        customer = f"customer-{number * 7919 % 1009}"
        event = FundsAdded(
            customerId=customer,
            amount=amount.quantize(Decimal("0.01")),
            id=str(number),
            occurredOn=START + timedelta(seconds=number),
        )
        self._sums[customer] += event.amount
        self._counts[customer] += 1
        if event.amount >= 1:
            count = self._counts[customer]
            totals = {revision: self._sums[customer] + bonus * count for revision, bonus in BONUS.items()}
            self.expected[event.id] = Receipt(customer, event.amount, count, totals)
        return event


@pytest.fixture(scope="module")
def deposits(settings: Settings) -> Deposits:
    make_topics(settings, SOURCE)
    return Deposits(EventSource(settings, SOURCE))


def written(settings: Settings, topic: str = EMISSION.output_topic) -> int:
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        return sum(end_offsets(consumer, topic, EMISSION.output_partitions(settings.topics)))
    except KafkaUnavailableError:
        return 0  # the topic does not exist yet
    finally:
        consumer.close()


def wait_for_more(settings: Settings, before: int) -> None:
    wait_until(lambda: written(settings) > before, "receipts are written", timeout_s=120)


def receipts(settings: Settings, topic: str = EMISSION.output_topic) -> list[dict[str, object]]:
    """Return the receipts in a topic, one partition after the other."""
    schema = fastavro.parse_schema(EMISSION.output_schema.parsed())
    found = []
    for message in records_of(settings, topic):
        record = fastavro.schemaless_reader(io.BytesIO((message.value() or b"")[HEADER_BYTES:]), schema, None)
        assert isinstance(record, dict)
        assert message.key() == record["customer"].encode()
        found.append(record)
    return found


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
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        for transition in transitions:
            change(registry, "savings", transition)


def moves(transition: Callable[..., object], number: int) -> Transition:
    """Return a transition that makes a version live."""
    now = datetime.now(UTC)
    return partial(transition, number=number, now=now, retire_live_after=now + timedelta(days=1))  # type: ignore[return-value]  # of either kind


def start_candidate(settings: Settings) -> int:
    """Add a version with the first fold revision as a candidate; return its number."""
    now = datetime.now(UTC)
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        number = len(registry.read()["savings"].versions) + 1
    change_versions(
        settings,
        partial(register, run_id=f"run {number}", reason="a test", fold_revision=CANDIDATE, now=now),
        partial(hand_over, number=number),
    )
    return number


def test_each_event_is_emitted_once_with_the_state_after_it(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    deposits.append(EVENTS_PER_ROUND)
    for _ in range(KILLS):
        driver.ensure_running()
        wait_for_more(settings, written(settings))
        deposits.append(EVENTS_PER_ROUND)
        driver.kill()
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    require_exact(settings, deposits, {FIRST})


def test_status_shows_an_emission(settings: Settings, driver: SharedDriver, deposits: Deposits) -> None:
    driver.ensure_running()
    deposits.append(10)

    def is_current() -> bool:
        (emission,) = read_stream_status(settings).emissions
        assert (emission.emission, emission.version, emission.output_topic) == ("receipts", 1, "receipts")
        return (emission.events_behind, emission.records) == (0, len(deposits.expected))

    wait_until(is_current, "the emission has caught up", timeout_s=120)


def test_a_promotion_and_a_rollback_hand_the_consumers_topic_over_exactly(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    start_candidate(settings)
    own = EMISSION.version_topic(2)
    deposits.append(EVENTS_PER_ROUND)
    wait_until(lambda: written(settings, own) >= len(deposits.expected), "the candidate emits", timeout_s=240)
    assert {record["revision"] for record in receipts(settings)} == {FIRST}, (
        "a candidate must not emit to the consumers"
    )
    with Load(deposits):
        time.sleep(1)
        change_versions(settings, moves(promote, 2))
        wait_for_revision(settings, CANDIDATE)
        driver.kill()
        driver.ensure_running()
        change_versions(settings, moves(roll_back, 1))
        wait_for_revision(settings, FIRST)
    require_exact(settings, deposits, {1, 2})
    # The version topic has every event at least up to the promotion, with its own revision only.
    assert {record["revision"] for record in receipts(settings, own)} == {CANDIDATE}


def test_a_retired_version_leaves_nothing_of_its_emissions(settings: Settings, driver: SharedDriver) -> None:
    driver.ensure_running()
    checkpoint = settings.home / "checkpoints" / "emission" / EMISSION.name / "v2"
    assert checkpoint.is_dir()
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        live = registry.read()["savings"].live
    assert live is not None
    assert live.number == 1

    retire_version(settings, "savings", 2)

    assert find_leftovers(settings, "savings", 2) == []
    assert not checkpoint.exists()
    assert not records_of(settings, EMISSION.version_topic(2))
    assert records_of(settings, EMISSION.output_topic)


@pytest.mark.endurance
def test_handovers_are_exact_with_many_kills_under_load(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    wait_until(lambda: written(settings) > 0, "receipts are written", timeout_s=120)
    number = start_candidate(settings)
    change_versions(settings, moves(promote, number))
    with Load(deposits):
        for kill in range(MANY_KILLS):
            change_versions(settings, moves(roll_back, (1, number)[kill % 2]))
            driver.ensure_running()
            time.sleep(LONGEST_RUN_S * (1 + kill) / MANY_KILLS + 20)
            driver.kill()
    driver.ensure_running()
    require_exact(settings, deposits, {1, 2})


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
