"""A route writes each output once, in order, however often its driver is killed, and a read model folds what it writes."""

import hmac
import io
import os
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message

from demo.log_tables import record_count
from include.declarations.load import load_catalog, read_model
from include.kafka.origins import LanePartition, OutputOrigin, WrittenRecords
from include.kafka.topics import dead_letter_topic
from include.kafka.wire_format import HEADER_BYTES
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from include.stream.query_reports import Phase
from tests.integration.emissions.receipts import Deposits, Load
from tests.integration.flows.conftest import BALANCE_IN_BATCHES
from tests.support.json_records.payments import LOGGED_ON, REFUSED_PAYMENTS, payment
from tests.support.stream_process import EventSource, records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[3] / "support" / "read_models_with_routes"
ROUTE = load_catalog((DECLARATIONS,)).routes["postings"]
PAYMENTS = load_catalog((DECLARATIONS,)).routes["payments"]
RECORDS = WrittenRecords(ROUTE.name, ROUTE.source_topic)
MANY_KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "20"))
# Longer than the commit interval of the tests, so that some kills come after a note of what is written.
LONGEST_RUN_S = 24.0
BANK = "bank"


@dataclass
class Postings:
    """What the routes have to write for the deposits, and for payments."""

    deposits: Deposits
    payments: dict[str, tuple[str, Decimal]] = field(default_factory=dict)

    @property
    def expected(self) -> dict[str, tuple[str, Decimal]]:
        """Return id -> account and amount; a deposit of less than one whole unit is too small."""
        accounts = {
            f"{event.id}/{account}": (account, event.amount)
            for event in self.deposits.events
            if event.amount >= 1
            for account in (f"{event.occurredOn:%Y-%m-%d}", BANK)
        }
        return accounts | self.payments

    def totals(self) -> dict[str, tuple[int, Decimal]]:
        """Return account -> number and sum of its postings."""
        counts: Counter[str] = Counter()
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for account, amount in self.expected.values():
            counts[account] += 1
            sums[account] += amount
        return {account: (counts[account], sums[account]) for account in counts}


@pytest.fixture(scope="module")
def postings(deposits: Deposits) -> Postings:
    return Postings(deposits)


def outputs(settings: Settings) -> list[Message]:
    return records_of(settings, ROUTE.output_topic)


def written(settings: Settings) -> int:
    return record_count(settings, ROUTE.output_topic)


def has_more(settings: Settings, before: int) -> bool:
    return written(settings) > before


def decoded(message: Message) -> dict[str, object]:
    value = message.value()
    assert value is not None
    schema = fastavro.parse_schema(ROUTE.output_schema.parsed())
    record = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), schema, None)
    assert isinstance(record, dict)
    return record


def test_each_output_is_written_once_in_order_after_a_kill_of_the_driver(
    settings: Settings, postings: Postings
) -> None:
    """One kill shows that a real driver begins where the last one ended; tests/unit/routes/test_crash_points.py has every step."""
    require_each_once_in_order(settings, postings)


@pytest.mark.endurance
def test_each_output_is_written_once_with_many_kills_under_load(
    settings: Settings, driver: SharedDriver, postings: Postings
) -> None:
    with Load(postings.deposits):
        for kill in range(MANY_KILLS):
            driver.ensure_running()
            wait_until(partial(has_more, settings, written(settings)), "the route writes", timeout_s=120)
            time.sleep(LONGEST_RUN_S * kill / MANY_KILLS)
            driver.kill()
    driver.ensure_running()
    require_each_once_in_order(settings, postings)


def require_each_once_in_order(settings: Settings, postings: Postings) -> None:
    """Wait until the route has caught up; fail unless its output is what it must be."""
    expected = postings.expected
    wait_until(lambda: written(settings) >= len(expected), "the route has caught up", timeout_s=240)
    found = outputs(settings)
    assert Counter(str(decoded(message)["id"]) for message in found) == Counter(expected.keys())
    newest: dict[LanePartition, OutputOrigin] = {}
    for message in found:
        source = RECORDS.origin(message)
        assert source is not None
        partition, origin = source
        pair = LanePartition(partition, message.partition() or 0)
        assert origin > newest.get(pair, OutputOrigin(-1, -1))
        newest[pair] = origin
        record = decoded(message)
        account, amount = expected[str(record["id"])]
        assert (message.key(), record["account"], record["amount"]) == (account.encode(), account, amount)


def test_a_pseudonym_is_the_keyed_hash_of_the_value(settings: Settings, postings: Postings) -> None:
    key = (settings.home / "pseudonym.key").read_bytes()
    customers = {event.id: event.customerId for event in postings.deposits.events}
    for message in outputs(settings):
        record = decoded(message)
        customer = customers.get(str(record["id"]).partition("/")[0])
        if customer is None:
            continue  # a payment
        assert record["customer"] == hmac.new(key, customer.encode(), "sha256").hexdigest()
        assert customer.encode() not in (message.value() or b"")


def test_a_read_model_folds_what_a_route_writes(
    settings: Settings, driver: SharedDriver, postings: Postings
) -> None:
    driver.ensure_running()
    postings.deposits.append(100)
    model = read_model("accounts", settings.declaration_folders)

    def folded() -> dict[str, tuple[int, Decimal]]:
        found = states(settings, model, "accounts.v1.changelog")
        return {key: (state.state["postings"], state.state["total"]) for key, state in found.items()}

    wait_until(lambda: folded() == postings.totals(), "the accounts are exact", timeout_s=240)


def test_what_a_route_cannot_read_becomes_a_dead_letter(
    settings: Settings, driver: SharedDriver, postings: Postings
) -> None:
    driver.ensure_running()
    letters = dead_letter_topic(ROUTE.source_topic)
    before = len(records_of(settings, letters))
    postings.deposits.source.append_raw(b"customer-1", b"junk")
    postings.deposits.append(10)
    wait_until(lambda: len(records_of(settings, letters)) == before + 1, "the dead letter", timeout_s=120)
    wait_until(lambda: len(outputs(settings)) == len(postings.expected), "the outputs", timeout_s=120)


def test_a_route_reads_json_and_merges_it_with_another_source(
    settings: Settings, driver: SharedDriver, postings: Postings
) -> None:
    driver.ensure_running()
    log = EventSource(settings, PAYMENTS.source_topic)
    letters = dead_letter_topic(PAYMENTS.source_topic)
    failing = payment("failing", Decimal(1)).replace(BANK.encode(), b"closed")
    for number in range(20):
        identity, amount = f"payment-{number}", Decimal(number) + Decimal("0.25")
        log.append_raw(b"terminal", payment(identity, amount))
        postings.payments[identity] = (BANK, amount)
        # Between the good ones, in the same batches.
        for text, _ in REFUSED_PAYMENTS[number::20]:
            log.append_raw(b"terminal", text)
        if number == 10:
            log.append_raw(b"terminal", failing)
    log.append_raw(b"terminal", b'{"logger_name": "other"}')
    log.flush()

    def headers() -> dict[Any, dict[str, Any]]:
        return {message.value(): dict(message.headers() or ()) for message in records_of(settings, letters)}

    refused = dict(REFUSED_PAYMENTS) | {failing: b"failed_expression"}
    wait_until(lambda: len(outputs(settings)) == len(postings.expected), "the outputs", timeout_s=120)
    wait_until(lambda: len(headers()) == len(refused), "the dead letters", timeout_s=120)
    assert {value: found["reason"] for value, found in headers().items()} == refused
    assert headers()[failing]["failure"] == b"route payments: field account"
    found = {str(decoded(message)["id"]): decoded(message) for message in outputs(settings)}
    for number in range(20):
        record = found[f"payment-{number}"]
        assert (record["account"], record["amount"]) == postings.expected[f"payment-{number}"]
        assert record["occurredOn"] == LOGGED_ON


def test_status_shows_a_route(settings: Settings, driver: SharedDriver, postings: Postings) -> None:
    driver.ensure_running()
    postings.deposits.append(10)

    def is_current() -> bool:
        routes = read_stream_status(settings).of_kind(FlowKind.ROUTE)
        route = next(one for one in routes if one.name == ROUTE.name)
        assert (route.name, route.source_topic, route.output_topic) == ("postings", "balance", "postings")
        return (route.events_behind, route.records) == (0, len(postings.expected))

    wait_until(is_current, "the route has caught up", timeout_s=120)


@pytest.mark.usefixtures("restarted")
def test_an_operator_makes_a_route_run_in_batches(settings: Settings, postings: Postings) -> None:
    overrides = {"stream_batch_mode": (ROUTE.name, BALANCE_IN_BATCHES)}
    postings.deposits.append(100)
    wait_until(lambda: len(outputs(settings)) == len(postings.expected), "the outputs", timeout_s=120)

    assert Counter(str(decoded(message)["id"]) for message in outputs(settings)) == Counter(
        postings.expected.keys()
    )
    status = read_stream_status(settings.changed(**overrides))
    assert {route.name: route.latency for route in status.of_kind(FlowKind.ROUTE)} == {
        "daily-deposits-by-key": "second",
        "payments": "milliseconds",
        "postings": "second",
    }
    queries = {report.query: report for report in status.reports}
    assert (queries[ROUTE.query_name].phase, queries[ROUTE.query_name].task_slots) == (Phase.BATCHES, 0)
    assert queries[PAYMENTS.query_name].task_slots > 0
