"""Values of a state as text, which both engines give as Python values."""

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from include.rebuild.comparison.state_difference import value_text

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (Decimal("1.50"), "1.50"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (AT.astimezone(timezone(timedelta(hours=2))), "2026-01-02 03:04:05"),
        (AT.replace(tzinfo=None), "2026-01-02 03:04:05"),
        ({"at": AT, "none": None}, "{at: 2026-01-02 03:04:05, none: null}"),
        ([1, {"x": math.inf}], "[1, {x: Infinity}]"),
        (True, "True"),
    ],
)
def test_a_value_has_one_text(value: object, text: str) -> None:
    assert value_text(value) == text
