"""Changes of any size fall into few bins with round edges."""

from decimal import Decimal

import pytest

from include.rebuild.comparison.histograms import MOST_DECADES, edges, plain


@pytest.mark.parametrize(
    ("smallest", "largest", "expected"),
    [
        ("1", "1", ["1", "2"]),
        ("3", "3", ["2", "5"]),
        ("5", "9.99", ["5", "10"]),
        ("0.01", "0.02", ["0.01", "0.02", "0.05"]),
        ("0.10", "90", ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"]),
        ("0.01", "12345.67", ["0.01", "0.1", "1", "10", "100", "1000", "10000", "100000"]),
    ],
)
def test_edges_are_round_and_include_both_ends(smallest: str, largest: str, expected: list[str]) -> None:
    assert [plain(edge) for edge in edges(Decimal(smallest), Decimal(largest))] == expected


def test_very_small_changes_share_the_first_bin() -> None:
    found = edges(Decimal("1e-30"), Decimal(7))
    assert len(found) == MOST_DECADES + 2
    assert found[-1] == 10


@pytest.mark.parametrize("exponent", [-20, 0, 36])
def test_the_largest_change_is_below_the_last_edge(exponent: int) -> None:
    for digits in ("1", "1.99", "2", "4.99", "5", "9.99"):
        value = Decimal(digits).scaleb(exponent)
        found = edges(value, value)
        assert found[0] <= value < found[-1]
        assert len(found) == 2
