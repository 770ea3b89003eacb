"""The merge of a fold in SQL is derived where it is exact, and nowhere else."""

import pytest

from include.declarations.rules.derived_merge import derived_merge


@pytest.mark.parametrize(
    ("fold", "merge"),
    [
        ({"a": "sum(CASE WHEN x THEN -y ELSE y END)"}, {"a": "SUM(a)"}),
        (
            {"a": "count(*)", "b": "count_if(x = 1)", "c": "count(x)"},
            {"a": "SUM(a)", "b": "SUM(b)", "c": "SUM(c)"},
        ),
        ({"a": "min(x)", "b": "max(x)"}, {"a": "MIN(a)", "b": "MAX(b)"}),
        ({"a": "bool_or(x)", "b": "bool_and(x)"}, {"a": "BOOL_OR(a)", "b": "BOOL_AND(b)"}),
        ({"a": "sum(x) FILTER (WHERE y)"}, {"a": "SUM(a)"}),
        (
            {"n": "count(x)", "any": "bool_or(y)", "open": "CASE WHEN bool_or(y) THEN 0 ELSE count(x) END"},
            {"n": "SUM(n)", "any": "BOOL_OR(any)", "open": "CASE WHEN BOOL_OR(any) THEN 0 ELSE SUM(n) END"},
        ),
        # A field that has the name of what another field adds up.
        ({"a": "sum(b)", "b": "sum(a)"}, {"a": "SUM(a)", "b": "SUM(b)"}),
    ],
)
def test_a_merge_is_derived(fold: dict[str, str], merge: dict[str, str]) -> None:
    assert derived_merge(fold, dict.fromkeys(fold, "long")) == merge


@pytest.mark.parametrize(
    "fold",
    [
        {"a": "sum(DISTINCT x)"},
        {"a": "count(DISTINCT x)"},
        {"a": "avg(x)"},
        {"a": "max_by(x, y)"},
        {"a": "percentile(x, 0.5)"},
        {"a": "my_aggregate(x)"},
        # Needs the sum of x in the state.
        {"a": "sum(x) / count(*)", "n": "count(*)"},
        {"a": "sum(a)", "b": "sum(b) + sum(a)"},
        # The sum of the events' field `a` is not that of the state's.
        {"a": "sum(x)", "b": "1 + sum(a)"},
        {"a": "max(x, 2)"},
    ],
)
def test_no_merge_is_derived_that_could_be_wrong(fold: dict[str, str]) -> None:
    assert derived_merge(fold, dict.fromkeys(fold, "long")) is None


@pytest.mark.parametrize("avro_type", ["double", ["null", "float"], {"type": "double"}])
def test_a_sum_of_floats_has_no_derived_merge(avro_type: object) -> None:
    assert derived_merge({"a": "sum(x)"}, {"a": avro_type}) is None
    assert derived_merge({"a": "max(x)"}, {"a": avro_type}) == {"a": "MAX(a)"}
