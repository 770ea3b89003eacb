"""Payments as a terminal logs them, in JSON: good ones, and those that a route refuses, with the reason."""

import json
from datetime import UTC, datetime
from decimal import Decimal

LOGGED_ON = datetime(2026, 1, 1, tzinfo=UTC)


def payment(identity: str, amount: Decimal) -> bytes:
    """Return a payment as a terminal logs it."""
    logged = {
        "@timestamp": f"{LOGGED_ON:%Y-%m-%dT%H:%M:%SZ}",
        "logger_name": "payments",
        "thread_name": "terminal",
    }
    return json.dumps(logged | {"id": identity, "account": "bank", "amount": str(amount)}).encode()


GOOD_PAYMENT = payment("payment-x", Decimal("1.25"))


def changed_payment(amount: str = '"1.25"', more: str = "") -> bytes:
    """Return a payment with another literal as its amount, and more members."""
    return GOOD_PAYMENT.replace(b'"1.25"', amount.encode()).replace(b"}", more.encode() + b"}")


REFUSED_PAYMENTS = (
    *(
        (changed_payment(amount), b"invalid_field")
        for amount in ("0.255", "true", '"2,5"', "1e400", "1.000000000000000000000001e0")
    ),
    *(
        (changed_payment(more=f', "tags": {tags}'), b"invalid_field")
        for tags in ('["a", null]', "[5]", "[[]]", '"a"', f"[{'[' * 900}{']' * 900}]")
    ),
    *(
        (text, b"malformed_json")
        for text in (
            b"junk",
            GOOD_PAYMENT + b"\n" + GOOD_PAYMENT,
            GOOD_PAYMENT + b"}",
            GOOD_PAYMENT + b"\0",
            GOOD_PAYMENT.replace(b'"', b"'"),
            changed_payment("NaN"),
            changed_payment(more=', "amount": "2,5"'),
            changed_payment(more=', "nested": [{"a": 1, "a": 2}]'),
            b"[" * 50_000,
        )
    ),
    (changed_payment(more=', "tags": ["\\ud83d"]'), b"invalid_text"),
)
