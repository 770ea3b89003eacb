"""A command is taken exactly as it is meant, or refused with everything that is wrong with it."""

from decimal import Decimal

import pytest

from query_api.commands.command_validation import FundsCommand, parse_command
from query_api.http.problems import ProblemError


def errors_of(body: bytes) -> dict[str, str]:
    with pytest.raises(ProblemError) as refused:
        parse_command(body)
    assert refused.value.status == 400
    found = refused.value.extra.get("errors", [])
    assert isinstance(found, list)
    return {error["field"]: error["error"] for error in found} or {"body": refused.value.slug}


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ('"5.00"', "5.00"),
        ("5.00", "5.00"),
        ("5", "5"),
        ("0.01", "0.01"),
        ('"0005.1"', "0005.1"),
        ('"9999999999999999.99"', "9999999999999999.99"),
        ("9007199254740993.01", "9007199254740993.01"),
    ],
)
def test_amount_is_exact_as_string_and_as_number(amount: str, expected: str) -> None:
    command = parse_command(b'{"customerId": "1", "amount": %s}' % amount.encode())

    assert command == FundsCommand("1", Decimal(expected), None)
    assert command.amount.as_tuple() == Decimal(expected).as_tuple()


@pytest.mark.parametrize(
    "amount",
    [
        '"5.001"', "5.001", '"0"', "0", '"-5.00"', "-5", "-0", '"0.00"', '"10000000000000000"', "1e2", '"1e2"', "1E400",
        "true", "null", "[]", "{}", '""', '" 5"', '"5 "', '"+5"', '"5."', '".5"', '"5,00"', '"NaN"', '"Infinity"',
        '"\u0665"', '"0x5"', '"1_000"', '"' + "1" * 100 + '"',
    ],
)  # fmt: skip
def test_invalid_amount_is_refused(amount: str) -> None:
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
        b'{"customerId": "1", "amount": "1"} more',
        b"[" * 10_000,
    ],
)
def test_body_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    assert errors_of(body) == {"body": "not-json"}


@pytest.mark.parametrize("customer", ['""', "5", "null", "true", '["1"]', '"\\ud800"', '"' + "x" * 257 + '"'])
def test_invalid_customer_id_is_refused(customer: str) -> None:
    assert "customerId" in errors_of(b'{"customerId": %s, "amount": "5.00"}' % customer.encode())


def test_customer_id_is_measured_in_bytes() -> None:
    longest = "é" * 128

    assert parse_command(f'{{"customerId": "{longest}", "amount": "1"}}'.encode()).customer_id == longest
    assert "customerId" in errors_of(f'{{"customerId": "{longest}x", "amount": "1"}}'.encode())


@pytest.mark.parametrize("event_id", ['""', "5", "null", '"' + "x" * 129 + '"'])
def test_invalid_event_id_is_refused(event_id: str) -> None:
    assert "id" in errors_of(b'{"customerId": "1", "amount": "1", "id": %s}' % event_id.encode())


def test_all_errors_are_reported_at_once() -> None:
    assert set(errors_of(b'{"amount": 0, "id": 1, "more": 1}')) == {"customerId", "amount", "id", "more"}
