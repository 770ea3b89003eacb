"""A comparison survives its file, and its shares are of all keys that either version has."""

from dataclasses import replace
from decimal import Decimal

import pytest

from include.rebuild.comparison.comparison import Comparison, FieldTotals
from tests.support.lake.comparison_example import EXAMPLE


def test_a_comparison_survives_its_file() -> None:
    assert Comparison.from_json(EXAMPLE.to_json()) == EXAMPLE


@pytest.mark.parametrize("text", ["", "[]", '{"read_model": "balance"}'])
def test_something_else_is_no_comparison(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Comparison.from_json(text)


def test_the_share_counts_changed_new_and_gone_keys_of_either_version() -> None:
    assert (EXAMPLE.differing, EXAMPLE.all_keys) == (400, 4_003)
    assert EXAMPLE.changed_percent == pytest.approx(100 * 400 / 4_003)


def test_versions_without_keys_do_not_differ() -> None:
    empty = replace(EXAMPLE.after, keys=0)
    nothing = replace(EXAMPLE, before=empty, after=empty, changed=0, added=0, gone=0)
    assert nothing.changed_percent == 0.0


def test_the_kind_of_a_change_is_that_of_its_record() -> None:
    assert [change.kind for change in (*EXAMPLE.largest, *EXAMPLE.samples)] == ["changed", "gone", "added"]


def test_the_net_change_of_large_sums_is_exact() -> None:
    totals = FieldTotals(before="12345678901234567890123456789012345.67", after="1.66")
    assert totals.difference == Decimal("-12345678901234567890123456789012344.01")


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("1", None)])
def test_a_field_that_only_one_version_has_has_no_change(before: str | None, after: str | None) -> None:
    totals = FieldTotals(before, after)
    assert totals.difference is None
    assert totals.difference_percent is None


def test_the_difference_of_two_infinite_sums_is_no_number() -> None:
    totals = FieldTotals("Infinity", "Infinity")

    assert str(totals.difference) == "NaN"
    assert totals.difference_percent is None


@pytest.mark.parametrize("before", ["0.00", "NaN"])
def test_a_change_relative_to_nothing_is_not_stated(before: str) -> None:
    assert FieldTotals(before, "5.00").difference_percent is None


def test_a_change_relative_to_a_negative_sum_keeps_its_sign() -> None:
    assert FieldTotals("-100", "-90").difference_percent == Decimal(10)
