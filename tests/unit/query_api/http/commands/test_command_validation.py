"""A command is accepted exactly as sent, or rejected with all of its errors."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from include.declarations.command_fields import DecimalField
from include.declarations.load import load_catalog
from include.kafka.events import GenericEvent, event_key
from query_api.http.commands.command_validation import parse_command
from query_api.http.problems import ProblemError

(API,) = load_catalog().apis
COMMAND = next(command for command in API.commands if command.name == "addFunds")
SCHEMA = API.schemas[COMMAND.path]


def parsed(body: bytes) -> GenericEvent:
    return parse_command(body, COMMAND, SCHEMA)


def errors_of(body: bytes) -> dict[str, str]:
    with pytest.raises(ProblemError) as refused:
        parsed(body)
    assert refused.value.status == 400
    found = refused.value.extra.get("errors", [])
    assert isinstance(found, list)
    return {error["field"]: error["error"] for error in found} or {"body": refused.value.slug}


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ('"5.00"', "5.00"),
        ("5.00", "5.00"),
        ("5", "5.00"),
        ("0.01", "0.01"),
        ('"0005.1"', "5.10"),
        ('"9999999999999999.99"', "9999999999999999.99"),
        ("9007199254740993.01", "9007199254740993.01"),
    ],
)
def test_amount_is_exact_as_string_and_as_number(amount: str, expected: str) -> None:
    event = parsed(b'{"customerId": "1", "amount": %s}' % amount.encode())

    assert event.schema.name == "FundsAdded"
    assert event_key(event) == b"1"
    assert event.values["customerId"] == "1"
    assert event.values["amount"].as_tuple() == Decimal(expected).as_tuple()


@pytest.mark.parametrize(
    "amount",
    [
        '"5.001"', "5.001", '"0"', "0", '"-5.00"', "-5", "-0", '"0.00"', '"10000000000000000"', "1e2", '"1e2"', "1E400",
        "true", "null", "[]", "{}", '""', '" 5"', '"5 "', '"+5"', '"5."', '".5"', '"5,00"', '"NaN"', '"Infinity"',
        '"\u0665"', '"0x5"', '"1_000"', '"' + "1" * 100 + '"',
    ],
)  # fmt: skip
def test_invalid_amount_is_rejected(amount: str) -> None:
    assert "amount" in errors_of(b'{"customerId": "1", "amount": %s}' % amount.encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"\xff\xfe",
        b"[]",
        b'"text"',
        b"5",
        b"null",
        b'{"customerId": "1", "amount": NaN}',
        b'{"customerId": "1", "amount": Infinity}',
        b'{"customerId": "1", "amount": "1", "amount": "2"}',
        b'{"customerId": "1", "amount": "1", "am\\u006funt": "2"}',
        b'{"customerId": "1", "amount": "1", "more": {"a": 1, "a": 1}}',
        b'{"customerId": "1", "amount": "1"} more',
        b'{"customerId": "1", "amount": "1"}{"customerId": "1", "amount": "1"}',
        b'{"customerId": "1", "amount": "1"}}',
        b'{"customerId": "1", "amount": "1"}\0',
        b'{"customerId": "1\0", "amount": "1"}',
        b'\xef\xbb\xbf{"customerId": "1", "amount": "1"}',
        b'{"customerId": "1", "amount": "1",}',
        b"{'customerId': '1', 'amount': '1'}",
        b'{"customerId": "1", /* no */ "amount": "1"}',
        b'{"customerId": "1", "amount": 01}',
        b'{"customerId": "1", "amount": .5}',
        b'{"customerId": "1", "amount": +5}',
        b"[" * 10_000,
    ],
)
def test_body_that_is_not_a_json_object_is_rejected(body: bytes) -> None:
    assert errors_of(body) == {"body": "not-json"}


@pytest.mark.parametrize("customer", ['""', "5", "null", "true", '["1"]', '"\\ud800"', '"' + "x" * 257 + '"'])
def test_invalid_customer_id_is_rejected(customer: str) -> None:
    assert "customerId" in errors_of(b'{"customerId": %s, "amount": "5.00"}' % customer.encode())


def test_customer_id_is_measured_in_bytes() -> None:
    longest = "é" * 128

    assert parsed(f'{{"customerId": "{longest}", "amount": "1"}}'.encode()).values["customerId"] == longest
    assert "customerId" in errors_of(f'{{"customerId": "{longest}x", "amount": "1"}}'.encode())


@pytest.mark.parametrize("event_id", ['""', "5", "null", '"' + "x" * 129 + '"'])
def test_invalid_event_id_is_rejected(event_id: str) -> None:
    assert "id" in errors_of(b'{"customerId": "1", "amount": "1", "id": %s}' % event_id.encode())


def test_event_has_the_given_or_a_generated_id_and_the_time() -> None:
    body = b'{"customerId": "1", "amount": "1"%s}'

    assert parsed(body % b', "id": "mine"').values["id"] == "mine"
    assert parsed(body % b"").values["id"] != parsed(body % b"").values["id"]
    assert (datetime.now(UTC) - parsed(body % b"").values["occurredOn"]).total_seconds() < 60


def test_unknown_field_error_lists_the_allowed_fields() -> None:
    found = errors_of(b'{"customerId": "1", "amount": "1", "more": 1}')

    assert found == {"more": "is unknown; allowed: amount, customerId, id"}


def test_all_errors_are_reported_at_once() -> None:
    assert set(errors_of(b'{"amount": 0, "id": 1, "more": 1}')) == {"customerId", "amount", "id", "more"}


def test_a_decimal_may_have_more_digits_than_the_default_context() -> None:
    field = DecimalField("amount", precision=38, scale=2)
    largest = "9" * 36 + ".99"

    assert field.error(largest) is None
    assert str(field.event_value(largest)) == largest
    assert field.error("1" + "0" * 36) == "is too large: it must be below 1" + "0" * 36
