"""Decimals become JSON numbers that keep their scale, never floats."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

from include.declarations.read_model import TIMESTAMP_MILLIS, decimal_type
from query_api.http.json_text import dumps, raw_json, unscaled_text


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
        (float("nan"), '"NaN"'),
        ([float("inf"), float("-inf")], '["Infinity","-Infinity"]'),
        ({"x": {"y": float("nan")}}, '{"x":{"y":"NaN"}}'),
        (-0.0, "-0.0"),
        (5e-324, "5e-324"),
        (time(1, 2, 3, 4000), '"01:02:03.004000"'),
        (date(9999, 12, 31), '"9999-12-31"'),
        (UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
    ],
)
def test_value_is_written_exactly(value: object, text: str) -> None:
    assert dumps(value) == text
    json.loads(text)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity")])
def test_a_value_without_a_json_form_is_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="not a JSON number"):
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

    assert unscaled_text(scale, unscaled) == text


@pytest.mark.parametrize(
    ("avro_type", "raw", "value"),
    [
        (decimal_type(10, 2), b"\x01\xf4", Decimal("5.00")),
        (TIMESTAMP_MILLIS, 1_767_323_045_678, datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)),
        ("long", 7, 7),
        ("string", 'é"', 'é"'),
        ({"type": "boolean"}, True, True),
        (["null", decimal_type(10, 2)], b"\xff", Decimal("-0.01")),
        ({"type": "array", "items": "string"}, ["a", "b"], ["a", "b"]),
        (["string", "long"], "a", "a"),
        (
            ["null", "long", {"type": "array", "items": TIMESTAMP_MILLIS}],
            [0],
            [datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        (
            {"type": "map", "values": ["null", decimal_type(10, 2)]},
            {"k": b"\x01", "n": None},
            {"k": Decimal("0.01"), "n": None},
        ),
    ],
)
def test_raw_value_is_written_as_its_logical_value(avro_type: object, raw: object, value: object) -> None:
    assert raw_json(avro_type)(raw) == dumps(value)
