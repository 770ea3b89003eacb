"""An id that rubbish claimed, and that the registry assigns to a schema later: the rubbish stays rejected, later events are folded.
A schema that cannot be used concerns the records with its id only.
"""

import json
from collections.abc import Iterator
from decimal import Decimal

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection, read_rejections
from include.kafka.wire_format import header
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.stream.query_reports import CONTINUOUS, query_status
from spark_jobs.folding.schema_cache import LOOKUPS_BEFORE_OPEN
from tests.support.faults.foreign_writers import decimal, payload, with_types
from tests.support.http.local_http import HTTP
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource, records_of
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DEAD_LETTERS = f"{BALANCE.source_topic}.dead-letter"
CLAIMED_IDS = 30
RUBBISH_CUSTOMER, CUSTOMER = "claims-an-id", "has-a-schema"


def register_unusable(settings: Settings, doc: str) -> list[int]:
    """Register schemas with which no event can be read in the subjects of the topic, and return their ids. doc: makes them new ones."""
    amount = with_types("FundsAdded", amount=decimal(64, 2)).parsed()
    scale = with_types("FundsAdded", amount=decimal(18, 2)).parsed()
    scale["fields"].append({"name": "scale", "type": decimal(4, 9), "default": ""})
    topic = BALANCE.source_topic
    text = doc.replace(" ", "")
    # Each has its own subject: the registry cannot compare a later version of a schema with one that it cannot parse.
    schemas = {
        f"{topic}-{text}-amount": [{"schema": json.dumps(amount | {"doc": doc})}],
        f"{topic}-{text}-scale": [{"schema": json.dumps(scale | {"doc": doc})}],
        f"{topic}-value": [{"schema": json.dumps({"type": "enum", "name": "E", "doc": doc, "symbols": []})}],
        f"{topic}-{text}": [
            {"schema": f'syntax = "proto3"; message {text} {{ string id = 1; }}', "schemaType": "PROTOBUF"}
        ],
    }
    return [
        int(
            HTTP.post(f"{settings.registry.url}/subjects/{subject}/versions", json=body)
            .raise_for_status()
            .json()["id"]
        )
        for subject, bodies in schemas.items()
        for body in bodies
    ]


@pytest.fixture(scope="module")
def driver(stream_stack: Settings) -> Iterator[SharedDriver]:
    def folds() -> bool:
        status = query_status(stream_stack.kafka_connection, "balance", 1)
        return status is not None and status.phase in CONTINUOUS

    register_unusable(stream_stack, "At start")
    with SharedDriver(stream_stack) as driver:
        driver.ensure_running()
        # By then, it has registered all of its own schemas.
        wait_until(folds, "the driver folds")
        yield driver


@pytest.fixture(scope="module")
def source(stream_stack: Settings) -> EventSource:
    return EventSource(stream_stack, BALANCE.source_topic)


@pytest.fixture(scope="module")
def ledger(stream_stack: Settings) -> Ledger:
    return Ledger(stream_stack)


def reasons(settings: Settings) -> list[str]:
    """Return the reason of every dead letter, in the order in which they were written."""
    found = sorted(records_of(settings, DEAD_LETTERS), key=lambda message: message.timestamp()[1])
    return [str(dict(message.headers() or [])["reason"], "utf-8") for message in found]  # type: ignore[arg-type]  # bytes


def newer_schema(field: str) -> RecordSchema:
    """Return a new version of FundsAdded."""
    schema = event_schema("FundsAdded").parsed()
    schema["fields"].append({"name": field, "type": "string", "default": ""})
    return RecordSchema.parse(json.dumps(schema), "FundsAdded with another field")


def next_ids(source: EventSource, name: str) -> list[int]:
    """Return ids that the registry has not assigned yet, but will assign next."""
    other = RecordSchema.parse(json.dumps({"type": "record", "name": name, "fields": []}), name)
    newest = source.registry.register("another-topic", other)
    return list(range(newest + 1, newest + 1 + CLAIMED_IDS))


def value(schema_id: int, schema: RecordSchema, customer: str, field: str) -> bytes:
    event = vars(FundsAdded(customerId=customer, amount=Decimal("1.25")))
    return header(schema_id) + payload(schema, event | {field: "x"})


def append_rubbish(source: EventSource, ids: list[int], schema: RecordSchema, field: str) -> None:
    """Append a record for each id, before the registry has it. It would be valid if the id were that of `schema`."""
    for schema_id in ids:
        source.append_raw(RUBBISH_CUSTOMER.encode(), value(schema_id, schema, RUBBISH_CUSTOMER, field))
    source.flush()


def append_event(
    source: EventSource, ledger: Ledger, schema_id: int, schema: RecordSchema, field: str
) -> None:
    source.append_raw(CUSTOMER.encode(), value(schema_id, schema, CUSTOMER, field))
    source.flush()
    ledger.add(FundsAdded(customerId=CUSTOMER, amount=Decimal("1.25")))


def rejections_of(settings: Settings, ids: list[int]) -> list[Rejection]:
    found = read_rejections(settings.kafka_connection, BALANCE.source_topic)
    return [found[schema_id] for schema_id in ids if schema_id in found]


@pytest.mark.usefixtures("driver")
def test_id_that_is_assigned_after_its_rejection_is_folded_from_its_first_event(
    stream_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    earlier = len(records_of(stream_stack, DEAD_LETTERS))
    ids, schema = next_ids(source, "First"), newer_schema("first")
    append_rubbish(source, ids, schema, "first")
    wait_until(
        lambda: len(records_of(stream_stack, DEAD_LETTERS)) == earlier + CLAIMED_IDS, "all are dead letters"
    )
    assert not any(rejection.is_open for rejection in rejections_of(stream_stack, ids))

    schema_id = source.registry.register(BALANCE.source_topic, schema)
    assert schema_id in ids
    append_event(source, ledger, schema_id, schema, "first")

    wait_until(lambda: ledger.is_folded(stream_stack), "the event is folded")
    ledger.assert_exact(stream_stack)
    assert len(records_of(stream_stack, DEAD_LETTERS)) == earlier + CLAIMED_IDS


def test_id_that_rubbish_repeats_stops_no_query_and_is_folded_once_it_is_assigned(
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    ids, schema = next_ids(source, "Second"), newer_schema("second")
    process = driver.process
    for _ in range(LOOKUPS_BEFORE_OPEN + 1):
        written = len(records_of(stream_stack, DEAD_LETTERS))
        append_rubbish(source, ids, schema, "second")
        wait_until(
            lambda expected=written + CLAIMED_IDS: len(records_of(stream_stack, DEAD_LETTERS)) == expected,  # type: ignore[misc]
            "all are dead letters",
        )
    open_rejections = rejections_of(stream_stack, ids)
    assert len(open_rejections) == CLAIMED_IDS
    assert all(rejection.is_open for rejection in open_rejections)

    schema_id = source.registry.register(BALANCE.source_topic, schema)
    wait_until(
        lambda: not rejections_of(stream_stack, [schema_id])[0].is_open,
        "the driver has noticed",
        timeout_s=90,
    )
    append_event(source, ledger, schema_id, schema, "second")

    wait_until(lambda: ledger.is_folded(stream_stack), "the event is folded")
    ledger.assert_exact(stream_stack)
    assert process.poll() is None


def test_restarted_driver_looks_up_each_id_again_from_its_first_event(
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    schema = newer_schema("third")
    found = read_rejections(stream_stack.kafka_connection, BALANCE.source_topic)
    still_open = [schema_id for schema_id, rejection in found.items() if rejection.is_open]
    driver.stop()

    driver.ensure_running()
    wait_until(
        lambda: not any(rejection.is_open for rejection in rejections_of(stream_stack, still_open)),
        "the rejections that the last test left open are closed",
    )
    schema_id = source.registry.register(BALANCE.source_topic, schema)
    assert schema_id in still_open
    append_event(source, ledger, schema_id, schema, "third")

    wait_until(lambda: ledger.is_folded(stream_stack), "the event is folded")
    ledger.assert_exact(stream_stack)


def test_schema_that_cannot_be_used_concerns_the_records_with_its_id_only(
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    earlier = len(records_of(stream_stack, DEAD_LETTERS))
    source.append(ledger.random_events(20))
    wait_until(
        lambda: ledger.is_folded(stream_stack),
        "events are folded beside schemas that were there at the start",
    )
    process = driver.process
    ids = [*register_unusable(stream_stack, "At start"), *register_unusable(stream_stack, "At run time")]
    value = source.serializer.serialize(FundsAdded(customerId="customer-1", amount=Decimal("1.25")))
    for schema_id in ids:
        source.append_raw(b"customer-1", header(schema_id) + value[5:])
    source.append(ledger.random_events(20))

    wait_until(lambda: len(reasons(stream_stack)) == earlier + len(ids), "each one is a dead letter")
    wait_until(lambda: ledger.is_folded(stream_stack), "events after them are folded")
    ledger.assert_exact(stream_stack)
    assert reasons(stream_stack)[earlier:] == ["incompatible_schema"] * len(ids)
    assert process.poll() is None


@pytest.mark.usefixtures("driver")
def test_event_of_a_schema_with_references_is_folded(
    stream_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    money = {"type": "record", "name": "shop.Fee", "fields": [{"name": "cents", "type": "long"}]}
    schema = event_schema("FundsAdded").parsed()
    fields = [*schema["fields"], {"name": "fee", "type": ["null", "shop.Fee"], "default": None}]
    references = [{"name": "shop.Fee", "subject": "shop-fee", "version": 1}]
    bodies = {
        "shop-fee": {"schema": json.dumps(money)},
        # It has its own subject: the registry compares later versions with it, and does not resolve its references then.
        f"{source.topic}-with-a-fee": {
            "schema": json.dumps(schema | {"fields": fields}),
            "references": references,
        },
    }
    for subject, body in bodies.items():
        answer = HTTP.post(f"{stream_stack.registry.url}/subjects/{subject}/versions", json=body)
        schema_id = answer.raise_for_status().json()["id"]
    event = FundsAdded(customerId="pays-a-fee", amount=Decimal("1.25"))
    value = source.serializer.serialize(event)[5:] + b"\x02\x0e"

    source.append_raw(event.customerId.encode(), header(schema_id) + value)
    source.flush()
    ledger.add(event)

    wait_until(lambda: ledger.is_folded(stream_stack), "the event is folded")
    ledger.assert_exact(stream_stack)
