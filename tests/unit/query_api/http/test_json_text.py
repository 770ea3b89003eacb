"""Decimals are JSON numbers with their scale kept, never floats."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from query_api.http.json_text import dumps, unscaled_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("5.00"), "5.00"),
        (Decimal("-0.05"), "-0.05"),
        (Decimal("0.00"), "0.00"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-7"), "0.0000001"),
        (Decimal("123456789012345678901234567890123456.78"), "123456789012345678901234567890123456.78"),
        ({"a": [Decimal("1.10"), None, True, 3, "é\n"]}, '{"a":[1.10,null,true,3,"\\u00e9\\n"]}'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00+00:00"'),
        (b"\x00\x01", '"AAE="'),
    ],
)
def test_value_is_written_exactly(value: object, text: str) -> None:
    assert dumps(value) == text
    json.loads(text)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), float("nan")])
def test_a_value_without_a_json_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"not a JSON number|JSON compliant"):
        dumps(value)


@pytest.mark.parametrize(
    ("number", "scale", "text"),
    [
        (500, 2, "5.00"),
        (-5, 2, "-0.05"),
        (0, 2, "0.00"),
        (7, 0, "7"),
        (-123456, 3, "-123.456"),
        (1, 2, "0.01"),
    ],
)
def test_avros_decimal_is_written_exactly(number: int, scale: int, text: str) -> None:
    unscaled = number.to_bytes(16, "big", signed=True)

    assert unscaled_text(unscaled, scale) == text
