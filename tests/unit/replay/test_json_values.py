"""Values of Arrow as JSON; test_json_values.py of the lake's tests compares them with Spark's."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.replay.json_values import json_object, json_text, typed_value

INNER = pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.decimal128(6, 2)))])
MOMENT = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, pa.int32(), "null"),
        (True, pa.bool_(), "true"),
        (Decimal("5.00"), pa.decimal128(6, 2), "5.00"),
        (Decimal("1E-10"), pa.decimal128(20, 10), "1E-10"),
        (datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC), MOMENT, '"2026-01-02T03:04:05.678Z"'),
        (datetime.fromisoformat("0001-01-01T00:00:00"), pa.timestamp("us"), '"0001-01-01T00:00:00.000"'),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        ('"\\\n\x1f/é', pa.string(), '"\\"\\\\\\n\\u001F/é"'),
        ([1, None], pa.list_(pa.int64()), "[1,null]"),
        ({"a": None, "b": [("x", Decimal("1.50"))]}, INNER, '{"a":null,"b":{"x":1.50}}'),
    ],
)
def test_a_value_is_written_by_its_type(value: object, kind: pa.DataType, text: str) -> None:
    assert json_text(value, kind) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.25e-7, "1.25E-7"),
        (5e-324, "4.9E-324"),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
        (float("nan"), '"NaN"'),
    ],
)
def test_a_fraction_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert json_text(value, pa.float64()) == text


def test_a_short_fraction_has_its_own_digits() -> None:
    (value,) = pa.array([0.1], pa.float32()).to_pylist()

    assert (json_text(value, pa.float32()), json_text(value, pa.float64())) == ("0.1", "0.10000000149011612")


@given(st.floats(allow_nan=False, allow_infinity=False), st.text())
def test_what_is_written_can_be_read(number: float, text: str) -> None:
    written = json_object([("number", number, pa.float64()), (text, text, pa.string())])

    assert json.loads(written) == {"number": number, text: text}


def test_an_answer_of_a_node_has_the_values_of_its_types() -> None:
    kind = pa.struct(
        [("at", MOMENT), ("bytes", pa.binary()), ("inner", INNER), ("list", pa.list_(pa.float64()))]
    )
    answer = {"at": "2026-01-02T03:04:05.678Z", "bytes": "AP8=", "inner": {"b": {"x": 2}}, "list": [1, None]}

    assert typed_value(answer, kind) == {
        "at": datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
        "bytes": b"\x00\xff",
        "inner": {"a": None, "b": [("x", Decimal(2))]},
        "list": [1.0, None],
    }
