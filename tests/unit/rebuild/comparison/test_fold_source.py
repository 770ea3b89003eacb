"""The difference between two folds is shown with all their lines, and a fold without a source does no harm."""

import functools
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.read_models.balance.model import READ_MODEL
from include.rebuild.comparison.fold_source import (
    FoldText,
    LineKind,
    code_difference,
    column_difference,
    difference,
    fold_code,
)
from tests.support.lake.comparison_example import EXAMPLE


def funds() -> Mapping[str, Column]:
    amount = F.when(F.col("event_type") == "FundsWithdrawn", -F.col("amount")).otherwise(F.col("amount"))
    return {"amount": F.sum(amount)}


def test_the_code_of_a_fold_in_sql_is_a_line_for_each_field() -> None:
    assert fold_code(READ_MODEL.folds[1]) == (
        "amount = sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount ELSE amount END)"
    )


def test_the_code_of_a_fold_is_its_function() -> None:
    lines = fold_code(funds).splitlines()
    assert lines[0].startswith("def funds()")
    assert lines[-1] == '    return {"amount": F.sum(amount)}'


def test_the_code_of_a_partial_fold_is_that_of_its_function() -> None:
    assert fold_code(functools.partial(funds)) == fold_code(funds)


def test_a_fold_without_a_source_has_no_code() -> None:
    scope: dict[str, object] = {}
    exec("def built(): return {}", scope)  # noqa: S102 - as a program that builds folds does
    assert fold_code(scope["built"]) == ""  # type: ignore[arg-type]
    assert fold_code(functools.partial(dict)) == ""


def test_a_difference_contains_every_line_with_its_mark() -> None:
    assert [str(line) for line in difference(["a", "b", "c"], ["a", "x", "c"])] == [" a", "-b", "+x", " c"]


def test_lines_that_look_like_a_header_are_lines() -> None:
    assert [str(line) for line in difference(["--- a"], ["+++ b"])] == ["---- a", "++++ b"]


def test_equal_folds_are_shown_as_kept() -> None:
    assert {line.kind for line in difference(["a", "b"], ["a", "b"])} == {LineKind.KEPT}


def test_the_example_differs_in_name_and_sum() -> None:
    code = [str(line) for line in code_difference(EXAMPLE.folds)]
    assert code[0] == "-def funds():"
    assert '+    return {"amount": F.sum(amount + bonus())}' in code
    assert [str(line) for line in column_difference(EXAMPLE.folds)] == [
        "-amount = sum(amount)",
        "+amount = sum(amount + bonus)",
    ]


def test_a_first_version_shows_its_fold_as_it_is() -> None:
    only = (FoldText(1, "def funds():\n    pass", ()),)
    assert [str(line) for line in code_difference(only)] == [" def funds():", "     pass"]
    assert code_difference(()) == ()
