"""The text of a rule for its fingerprint: formatting makes no difference, and everything else does."""

import pytest

from include.declarations.rules.notation import notation


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sum( amount )", "SUM(amount)"),
        ("sum(amount) -- of all", "sum(amount)"),
        ("a = 1 and (b = 2)", "a = 1\nAND b = 2"),
        ("date_format(a,  'yyyy')", "date_format(a, 'yyyy')"),
    ],
)
def test_formatting_is_no_difference(one: str, other: str) -> None:
    assert notation(one) == notation(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cast(a AS int)", "try_cast(a AS int)"),
        ("a - (b - c)", "a - b - c"),
        ("sum(a)", "sum(DISTINCT a)"),
        ("sum(a)", "sum(a) FILTER (WHERE b)"),
        ("max_by(a, b)", "max_by(a, b, 3)"),
        ("count(a)", "count(a, b)"),
        ("concat_ws(' ', a)", "concat_ws('  ', a)"),
        ("'a'", "a"),
        ("a.b", "`a.b`"),
        ("1", "1L"),
        ("0.02", "0.02D"),
        ("any_value(a)", "any_value(a) IGNORE NULLS"),
        ("CASE a WHEN 1 THEN 2 END", "CASE WHEN a THEN 2 END"),
        ("NOT a AND b", "NOT (a AND b)"),
        ("round(a, 2)", "round(a)"),
        ("a = 'x'", "a <=> 'x'"),
    ],
)
def test_any_other_rule_has_another_text(one: str, other: str) -> None:
    assert notation(one) != notation(other)
