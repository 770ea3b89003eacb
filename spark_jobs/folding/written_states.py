"""Aggregates events to states without an error: a state that cannot be written as its record is named, and does not stop the query.

A sum can be out of range, an expression of aggregates can fail, and a value can be none of its field's type. FAILED then names the field:
the key has no record at this position, in the changelog as in the lake and in checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql.functions import coalesce, col, concat, lit, when

from include.kafka.record_schema import RecordSchema
from include.position import EVENT_COUNT, POSITION_COLUMNS
from spark_jobs.folding.expressions.analysed import (
    aggregates_of,
    as_column,
    as_expression,
    children,
    expressions_of,
    kind_of,
    replaced,
)
from spark_jobs.folding.expressions.avro_columns import field_types, nullable, typed_columns
from spark_jobs.folding.expressions.exact_sums import exact_sum
from spark_jobs.folding.expressions.failed_expressions import (
    attempt,
    can_raise,
    first_failure,
    is_never_null,
    named,
    raises,
)
from spark_jobs.folding.expressions.failed_fields import field_failures

# What of a state fails; null if nothing does. Frames of states that cannot fail lack it.
FAILED = "record:failed"
PART = "record:part:"
# Aggregates that have a value if each event has one.
OF_ALL_VALUES = frozenset(("Average", "Max", "Min", "Sum"))


@dataclass(frozen=True)
class RecordCheck:
    """How states are checked against their record.

    owner: names the declaration in messages. required: the columns that states are aggregated from, and that are never null.
    is_partial: the states are of a part of the events, and are merged before they are written: any field may be null.
    """

    owner: str
    schema: RecordSchema
    required: frozenset[str] = frozenset()
    is_partial: bool = False


def aggregated_states(
    groups: GroupedData,
    columns: Sequence[Column],
    others: Sequence[Column] = (),
    *,
    check: RecordCheck | None,
    is_exact: bool = True,
) -> DataFrame:
    """Return the aggregates of each group, and FAILED if a state can fail.

    Args:
        groups: of events, or of states.
        columns: the fields of a state and its position. A field that would raise an error is null.
        others: further aggregates, which cannot fail.
        check: None: whether a value is one of its field's type does not count.
        is_exact: whether sums that could overflow are computed in parts. The state of a checkpoint that was made without them needs
            the sums as they are: one that overflows raises an error.
    """
    plain = groups.agg(*columns, *others)
    first = len(plain.columns) - len(columns) - len(others)
    names = plain.columns[first : first + len(columns)]
    fields = {
        name: expression
        for name, expression in zip(names, _aggregated(plain)[first:], strict=False)
        if name not in POSITION_COLUMNS
    }
    parts = _Parts(is_exact=is_exact)
    for name, expression in fields.items():
        parts.add(name, expression)
    states = plain
    if parts.columns:
        columns_of = dict(zip(names, columns, strict=True))
        aggregates = (part for name in names for part in parts.columns.get(name, [columns_of[name]]))
        whole = groups.agg(*aggregates, *others)
        states = parts.states(whole, plain.columns)
    failures = [col(FAILED)] if FAILED in states.columns else []
    if check is not None:
        required = frozenset(
            name for name, expression in fields.items() if _is_never_null(expression, check.required)
        )
        failures += _unwritable(check, tuple(fields), states, required)
    failure = first_failure(failures)
    return states if failure is None else states.withColumn(FAILED, failure)


def has_failed(states: DataFrame) -> Column:
    """Return whether a state has no record."""
    return col(FAILED).isNotNull() if FAILED in states.columns else lit(False)  # noqa: FBT003 - a column


class _Parts:
    """The fields that overflow or raise an error, in parts: their aggregates, the sums that these yield, and the fields.

    columns: field -> its aggregates. An aggregate remains where it was in the order of all, which is the order in a checkpoint's state.
    """

    def __init__(self, *, is_exact: bool) -> None:
        self._is_exact = is_exact
        self.columns: dict[str, list[Column]] = {}
        self._sums: list[_Sum] = []
        self._values: dict[str, Column] = {}

    def add(self, name: str, expression: Any) -> None:  # noqa: ANN401 - a Java object
        """Add a field, if it can fail."""
        columns: list[Column] = []
        sums: list[_Sum] = []

        def part(found: Any) -> Any:  # noqa: ANN401 - Java objects
            if not _is_aggregate(found):
                return None
            exact = exact_sum(found) if self._is_exact else None
            source = f"{PART}{name}:{len(columns)}"
            if exact is None:
                columns.append(as_column(found).alias(source))
                return as_expression(col(source))
            sources = [f"{source}:{i}" for i in range(len(exact.parts))]
            columns.extend(one.alias(of) for one, of in zip(exact.parts, sources, strict=True))
            sums.append(_Sum(name, source, sources[0], exact.result(*map(col, sources))))
            return as_expression(col(source))

        value = as_column(replaced(expression, part))
        if sums or can_raise(expression):
            self.columns[name], self._values[name] = columns, value
            self._sums += sums

    def states(self, whole: DataFrame, names: Sequence[str]) -> DataFrame:
        """Return the columns with these names, and FAILED, of a frame with the aggregates."""
        whole = whole.select("*", *(found.value.alias(found.column) for found in self._sums))
        failures = [
            named(
                f"field {one.field}: a sum is out of range",
                col(one.part).isNotNull() & col(one.column).isNull(),
            )
            for one in self._sums
        ]
        has_events = col(EVENT_COUNT.name) > 0
        values = {}
        analysed = expressions_of(whole.select(*(value.alias(name) for name, value in self._values.items())))
        for (name, value), expression in zip(self._values.items(), analysed, strict=True):
            found = value
            if can_raise(expression):
                failures.append(named(f"field {name}: an expression fails", raises(has_events, value)))
                found = attempt(when(has_events, value))
            values[name] = found.alias(name)
        failure = coalesce(*failures).alias(FAILED)
        return whole.select(*(values.get(name, col(name)) for name in names), failure)


@dataclass(frozen=True)
class _Sum:
    """An exact sum in a field: the column of its value, a column that is null without values, and the value."""

    field: str
    column: str
    part: str
    value: Column


def _unwritable(
    check: RecordCheck, names: Sequence[str], states: DataFrame, required: frozenset[str]
) -> list[Column]:
    """Return for each field a text where its value is none that the record can have; required: the fields that are never null."""
    types = field_types(check.schema)
    if check.is_partial:
        types = {name: nullable(kind) for name, kind in types.items()}
    typed = typed_columns(check.owner, check.schema, {name: col(name) for name in names}, states)
    failures = field_failures(col(EVENT_COUNT.name) > 0, typed, types, states, required)
    return [concat(failure, lit(": its value is none of its type")) for failure in failures]


def _is_never_null(expression: Any, required: frozenset[str]) -> bool:  # noqa: ANN401 - a Java object
    """Return whether an aggregate of events has a value, given the columns that are never null."""
    if not _is_aggregate(expression) or expression.filter().isDefined():
        return not expression.nullable()
    function = expression.aggregateFunction()
    if kind_of(function) not in OF_ALL_VALUES:
        return not function.nullable()
    return all(is_never_null(found, required) for found in children(function))


def _aggregated(frame: DataFrame) -> list[Any]:
    """Return the analysed expression of each column of a grouped aggregation, without its name."""
    return [next(children(one)) if kind_of(one) == "Alias" else one for one in aggregates_of(frame)]


def _is_aggregate(expression: Any) -> bool:  # noqa: ANN401 - a Java object
    return kind_of(expression) == "AggregateExpression"
