"""Sums of longs, and of decimals of nearly 38 digits: each is computed as two sums of smaller numbers, which do not overflow.

Spark raises an error as soon as a partial sum is out of range, and the order of the events decides which partial sums there are. The two
sums are exact: whether their result is in range depends on the events alone, and a result that is out of range is null, not an error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.functions import lit, when

from spark_jobs.folding.expressions.analysed import as_column, as_expression, catalyst, decimal_type, kind_of
from spark_jobs.folding.expressions.failed_expressions import MAX_DIGITS

HALF = 32
LOW = 2**HALF - 1
# A sum of decimals has ten digits more than they have, and at most 38: with fewer digits, ten billion events of a key do not overflow.
MOST_DIGITS = 28
# Of a decimal, the upper 18 digits and the lower 20 are summed.
LOWER_DIGITS, UPPER_DIGITS = 20, 18


@dataclass(frozen=True)
class ExactSum:
    """A sum, or an average of decimals, in parts.

    parts: the aggregates. result: returns their value, given the column of each; null if there is none, and if it is out of range.
    """

    parts: tuple[Column, ...]
    result: Callable[..., Column]


def exact_sum(aggregate: Any) -> ExactSum | None:  # noqa: ANN401 - a Java object
    """Return an analysed aggregate in parts; None if it does not overflow, or is `try_sum` or `try_avg`."""
    function = aggregate.aggregateFunction()
    kind = kind_of(function)
    if kind not in {"Sum", "Average"} or aggregate.isDistinct() or _mode(function, kind) != "ANSI":
        return None
    child = function.child()
    of = str(child.dataType().simpleString())
    value = as_column(child)
    if aggregate.filter().isDefined():
        value = when(as_column(aggregate.filter().get()), value)
    if of == "bigint":
        return _of_longs(value) if kind == "Sum" else None
    if not of.startswith("decimal") or int(child.dataType().precision()) <= MOST_DIGITS:
        return None
    found = _of_decimals(value, int(child.dataType().scale()))
    return found if kind == "Sum" else _average(found, value, function.dataType())


def _mode(function: Any, kind: str) -> str:  # noqa: ANN401 - a Java object
    return str((function.evalContext() if kind == "Sum" else function).evalMode())


def _of_longs(value: Column) -> ExactSum:
    def result(high: Column, low: Column) -> Column:
        upper = F.try_add(high, F.shiftright(low, HALF))
        return F.try_add(F.try_multiply(upper, lit(LOW + 1)), low.bitwiseAND(lit(LOW)))

    return ExactSum((F.sum(F.shiftright(value, HALF)), F.sum(value.bitwiseAND(lit(LOW)))), result)


def _of_decimals(value: Column, scale: int) -> ExactSum:
    unit, half_unit = lit(_shifted(10, scale)), lit(_shifted(5, scale))
    # A product with more digits would lose the last one.
    digits = min(UPPER_DIGITS + 1, 56 - scale)

    def result(high: Column, low: Column) -> Column:
        # The whole product may be out of range although its sum with the lower digits is not.
        half = F.try_multiply(high.try_cast(f"decimal({digits},0)"), half_unit)
        return _added(scale, half, half, low)

    high = F.call_function("div", value, unit).cast(f"decimal({UPPER_DIGITS},0)")
    return ExactSum((F.sum(high), F.sum(value % unit)), result)


def _shifted(digits: int, scale: int) -> Decimal:
    """Return a number of one or two digits, as many places left of the last of `scale` digits as there are lower digits to a ten."""
    places = LOWER_DIGITS - 1 - scale
    return Decimal(digits * 10**places) if places >= 0 else Decimal(digits).scaleb(places)


def _average(of_sum: ExactSum, value: Column, data_type: Any) -> ExactSum:  # noqa: ANN401 - a Java object
    """Return the average, given the sum: of the type, and with the digits, that Spark's has."""

    def result(high: Column, low: Column, number: Column) -> Column:
        total = as_expression(of_sum.result(high, low))
        divisor = as_expression(number.cast("decimal(20,0)"))
        context, is_null_if_out_of_range = None, True
        divided = catalyst("DecimalDivideWithOverflowCheck")(
            total, divisor, data_type, context, is_null_if_out_of_range
        )
        return when(number > 0, as_column(divided))

    return ExactSum((*of_sum.parts, F.count(value)), result)


def _added(scale: int, *values: Column) -> Column:
    """Return the sum of decimals with all digits of this scale, null if it is out of range: `+` would give up the last digits."""
    wide = decimal_type(MAX_DIGITS, scale)
    found, *others = (as_expression(value.try_cast(f"decimal({MAX_DIGITS},{scale})")) for value in values)
    for other in others:
        found = catalyst("DecimalAddNoOverflowCheck")(found, other, wide)
    is_null_if_out_of_range = True
    return as_column(catalyst("CheckOverflow")(found, wide, is_null_if_out_of_range))
