"""The rules over columns that an expectation can use. Each is defined once and yields both forms that a check needs.

`fails` marks the failing rows in SQL of DuckDB, for their number and the list of failing keys; `statement` is the same rule for
Great Expectations, which counts and samples the failing rows for the report.
"""

import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as Statement


class Rule(Protocol):
    """A condition that must hold in every row of a frame."""

    @property
    def fails(self) -> str:
        """The SQL of a condition that is true where a row breaks the rule; false or null where it does not."""

    def statement(self) -> "Statement":
        """Return the rule as an expectation of Great Expectations."""


@dataclass(frozen=True)
class Expectation:
    """A rule and its name in reports and in `lake/_quality`.

    columns: further columns that the rule needs in addition to those of the comparison (include/replay/key_expectations.py): name ->
        SQL. The names must be unique across all expectations.
    """

    name: str
    rule: Rule
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Equal:
    """Two columns are equal; two nulls are equal."""

    left: str
    right: str

    @property
    def fails(self) -> str:
        """See Rule."""
        return f"{quoted(self.left)} IS DISTINCT FROM {quoted(self.right)}"

    def statement(self) -> "Statement":
        """See Rule."""
        return _statement(
            "ExpectColumnPairValuesToBeEqual",
            column_A=self.left,
            column_B=self.right,
            ignore_row_if="both_values_are_missing",
        )


@dataclass(frozen=True)
class NotNull:
    """A column has a value."""

    column: str

    @property
    def fails(self) -> str:
        """See Rule."""
        return f"{quoted(self.column)} IS NULL"

    def statement(self) -> "Statement":
        """See Rule."""
        return _statement("ExpectColumnValuesToNotBeNull", column=self.column)


@dataclass(frozen=True)
class AtLeastColumn:
    """A column is not less than another one, if both have a value."""

    column: str
    least: str

    @property
    def fails(self) -> str:
        """See Rule."""
        return f"{quoted(self.column)} < {quoted(self.least)}"

    def statement(self) -> "Statement":
        """See Rule."""
        return _statement(
            "ExpectColumnPairValuesAToBeGreaterThanB",
            column_A=self.column,
            column_B=self.least,
            or_equal=True,
            ignore_row_if="either_value_is_missing",
        )


@dataclass(frozen=True)
class AtMost:
    """A column is at most a value; with `below`, less than it. Null passes."""

    column: str
    most: float
    below: bool = False

    @property
    def fails(self) -> str:
        """See Rule."""
        return f"{quoted(self.column)} {'>=' if self.below else '>'} {self.most}"

    def statement(self) -> "Statement":
        """See Rule."""
        return _statement(
            "ExpectColumnValuesToBeBetween", column=self.column, max_value=self.most, strict_max=self.below
        )


def _statement(expectation: str, **arguments: object) -> "Statement":
    """Return an expectation of Great Expectations by the name of its class."""
    statement: Statement = getattr(great_expectations().expectations, expectation)(**arguments)
    return statement


def great_expectations() -> Any:  # noqa: ANN401 - the module
    """Return the module of Great Expectations, with analytics off and only warnings logged."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # Ignore deprecations in the modules that it imports.
        warnings.simplefilter("ignore")
        import great_expectations  # noqa: PLC0415 - the import takes seconds

    # The import sets a level of its own.
    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)
    return great_expectations


def quoted(name: str) -> str:
    """Return a name in SQL: it may have capital letters, and any character."""
    return '"' + name.replace('"', '""') + '"'
