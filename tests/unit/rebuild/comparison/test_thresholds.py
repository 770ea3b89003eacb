"""A threshold says what it allows and by how much it is exceeded; its fields are validated."""

from dataclasses import replace
from typing import Any

import pytest

from include.rebuild.comparison.comparison import FieldTotals
from include.rebuild.comparison.thresholds import Thresholds, exceeded, thresholds_of
from include.rebuild.errors import RequestError
from tests.support.lake.comparison_example import EXAMPLE


def test_without_fields_there_is_no_limit() -> None:
    assert thresholds_of({}) == Thresholds()
    assert thresholds_of({"max_changed_percent": "", "max_total_change": None}) == Thresholds()
    assert not Thresholds().are_set


def test_the_fields_are_kept() -> None:
    conf = {"max_changed_percent": 0, "max_total_change": 10.5, "no_negative": True}
    assert thresholds_of(conf) == Thresholds(0.0, 10.5, no_negative=True)
    assert thresholds_of({"max_changed_percent": 0}).are_set


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"max_changed_percent": 100.1}, "max_changed_percent is 100.1; allowed: a number from 0 to 100"),
        ({"max_changed_percent": -1}, "max_changed_percent is -1"),
        ({"max_changed_percent": "5 %"}, "max_changed_percent is '5 %'"),
        ({"max_changed_percent": True}, "max_changed_percent is True"),
        ({"max_total_change": -0.01}, "max_total_change is -0.01; allowed: a number of at least 0"),
        ({"max_total_change": float("nan")}, "max_total_change is nan"),
        ({"max_total_change": float("inf")}, "max_total_change is inf"),
        ({"no_negative": "yes"}, "no_negative is 'yes'; allowed: true"),
    ],
)
def test_an_invalid_field_is_refused(conf: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        thresholds_of(conf)


def test_what_is_within_the_thresholds_is_not_exceeded() -> None:
    just = Thresholds(EXAMPLE.changed_percent, 1_820_100.0)
    assert exceeded(just, EXAMPLE) == ()
    assert exceeded(Thresholds(), EXAMPLE) == ()


@pytest.mark.parametrize(
    ("thresholds", "sentence"),
    [
        (
            Thresholds(max_changed_percent=5.0),
            "400 of 4,003 keys differ (9.99 %), and at most 5 % may (max_changed_percent).",
        ),
        (
            Thresholds(max_total_change=1_820_099.99),
            "amount changes by 1,820,100.00 over all keys, without the signs, and at most 1,820,099.99 is allowed (max_total_change).",
        ),
        (
            Thresholds(no_negative=True),
            "amount is below zero in 7 keys, and none may be (no_negative); before: in 0.",
        ),
    ],
)
def test_an_exceeded_threshold_is_named_with_both_numbers(thresholds: Thresholds, sentence: str) -> None:
    assert exceeded(thresholds, EXAMPLE) == (sentence,)


def test_increases_and_decreases_that_cancel_out_are_not_within_a_total_of_zero() -> None:
    moved = FieldTotals("10.00", "10.00", moved="4.00")
    assert exceeded(Thresholds(max_total_change=0.0), replace(EXAMPLE, fields={"amount": moved}))


def test_a_total_that_is_too_large_to_be_added_up_is_above_every_limit() -> None:
    huge = FieldTotals("NaN", "NaN", moved="NaN")
    assert exceeded(Thresholds(max_total_change=1e300), replace(EXAMPLE, fields={"amount": huge}))


def test_without_a_version_to_compare_with_every_threshold_is_exceeded() -> None:
    alone = replace(EXAMPLE, before=None)
    (sentence,) = exceeded(Thresholds(max_changed_percent=100.0), alone)
    assert "no live version" in sentence
