"""Expressions of declarations that raise an error for an event, such as a division by zero: Spark would fail the task and every restart.

They are found in the expressions that Spark has analysed: most cannot raise an error and cost nothing. Each of the others is evaluated
once more, without raising, before the event is folded or routed: an event for which one raises an error is a dead letter.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import coalesce, col, lit, struct, when

from include.declarations.event_types.event_columns import EVENT_TYPE
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.expressions.analysed import (
    aggregates_of,
    as_column,
    as_expression,
    catalyst,
    children,
    expressions_of,
    java_class,
    kind_of,
    replaced,
    sequence,
)
from spark_jobs.folding.expressions.avro_columns import branches, field_types

# Expressions of Spark that raise no error, whatever their arguments are.
NEVER_RAISE = frozenset(
    [
        "Alias",
        "And",
        "AttributeReference",
        "Bin",
        "CaseWhen",
        "Coalesce",
        "Concat",
        "ConcatWs",
        "Contains",
        "CreateArray",
        "CreateNamedStruct",
        "DateDiff",
        "DayOfMonth",
        "DayOfWeek",
        "DayOfYear",
        "EndsWith",
        "EqualNullSafe",
        "EqualTo",
        "GetStructField",
        "GreaterThan",
        "GreaterThanOrEqual",
        "Greatest",
        "HashExpression",
        "Hour",
        "If",
        "In",
        "InSet",
        "InitCap",
        "IsNaN",
        "IsNotNull",
        "IsNull",
        "LastDay",
        "Least",
        "Length",
        "LessThan",
        "LessThanOrEqual",
        "Literal",
        "Lower",
        "Md5",
        "Minute",
        "Month",
        "Murmur3Hash",
        "NaNvl",
        "Not",
        "NullIf",
        "Or",
        "Quarter",
        "Second",
        "Sha1",
        "Sha2",
        "Signum",
        "Size",
        "StartsWith",
        "StringTrim",
        "StringTrimLeft",
        "StringTrimRight",
        "Substring",
        "TruncDate",
        "TruncTimestamp",
        "TryAdd",
        "TryDivide",
        "TryMod",
        "TryMultiply",
        "TrySubtract",
        "UnixDate",
        "UnixMicros",
        "UnixMillis",
        "UnixSeconds",
        "Upper",
        "WeekOfYear",
        "Year",
        "XxHash64",
    ]
)
# These raise no error for floating-point numbers, nor for a decimal that has a digit to spare.
ARITHMETIC = frozenset(("Add", "Subtract", "Multiply", "UnaryMinus", "Abs"))
# `try_add` and the like are these, in another mode.
TRIED = frozenset(("Add", "Cast", "Divide", "IntegralDivide", "Multiply", "Remainder", "Subtract"))
# Of these, only null is null.
NULL_OF_NULL = frozenset(("Abs", "Alias", "UnaryMinus"))
FLOATING = frozenset(("double", "float"))
NUMBERS = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double"))
MAX_DIGITS = 38


def attempt(column: Column) -> Column:
    """Return the column, with null in place of an error."""
    return as_column(catalyst("TryEval")(as_expression(column)))


def raises(condition: Column, column: Column) -> Column:
    """Return whether the column raises an error where the condition holds, which must not be a constant.

    The branch of a condition is also what keeps Spark from evaluating a part that several columns share before all of them.
    """
    return condition & attempt(when(condition, struct(column))).isNull()


def can_raise(expression: Any) -> bool:  # noqa: ANN401, PLR0911 - a Java object; one return for each kind
    """Return whether an analysed expression may raise an error for some event."""
    kind = kind_of(expression)
    # An aggregate that overflows is another matter: see exact_sums.py.
    if kind in {"TryEval", "AggregateExpression"}:
        return False
    if expression.foldable():
        return _constant_raises(expression)
    if kind in TRIED and _is_tried(expression):
        return any(map(can_raise, children(expression)))
    if kind in ARITHMETIC:
        if not _has_room(expression, kind):
            return True
    elif kind == "Cast":
        if not _is_safe_cast(expression):
            return True
    elif kind not in NEVER_RAISE:
        return True
    return any(map(can_raise, children(expression)))


def aggregated(frame: DataFrame) -> list[tuple[str, list[Any]]]:
    """Return the name of each column of a grouped aggregation, and the expressions that its groups and aggregates are computed of."""
    return [(str(column.name()), list(_inputs(column)) or [column]) for column in aggregates_of(frame)]


def first_failure(failures: Sequence[Column]) -> Column | None:
    """Return the first text that is not null; null if there is none, and None without any."""
    return coalesce(*failures) if failures else None


def named(name: str, fails: Column) -> Column:
    """Return the name where the condition holds, else null."""
    return when(fails, lit(name))


def required_columns(readers: Sequence[RecordSchema]) -> frozenset[str]:
    """Return the columns of decoded events of these types that are never null: the fields that all have, and none may leave out."""
    names = [
        {name for name, kind in field_types(reader).items() if not branches(kind)[1]} for reader in readers
    ]
    return frozenset(set.intersection(*names))


def is_never_null(expression: Any, required: AbstractSet[str]) -> bool:  # noqa: ANN401 - a Java object
    """Return whether an analysed expression has a value for every event."""
    kind = kind_of(expression)
    if kind == "AttributeReference" and str(expression.name()) in required:
        return True
    if kind in NULL_OF_NULL or (kind == "Cast" and _is_safe_cast(expression)):
        return all(is_never_null(child, required) for child in children(expression))
    if kind == "CaseWhen" and expression.elseValue().isDefined():
        cases = expression.branches()
        values = [cases.apply(i)._2() for i in range(cases.size())]  # noqa: SLF001 - a Scala tuple
        return all(is_never_null(value, required) for value in (*values, expression.elseValue().get()))
    return not expression.nullable()


def of_any_item(array: Column, items: DataFrame, item: str, failure: Column, events: DataFrame) -> Column:
    """Return the first failure of an array's elements; null if there is none.

    items: the events with a row for each element, as the column `item`. failure: of an element, made of the columns of `items`.
    """
    jdf: Any = items._jdf  # noqa: SLF001 - PySpark does not expose them
    output = jdf.queryExecution().analyzed().output()
    element = next(found for i in reversed(range(output.size())) if (found := output.apply(i)).name() == item)
    variable = catalyst("NamedLambdaVariable")(
        item,
        element.dataType(),
        True,  # noqa: FBT003 - nullable
        element.exprId(),
        java_class("java.util.concurrent.atomic.AtomicReference")(),
    )
    (body,) = expressions_of(items.select(failure.alias("failure")))
    (elements,) = expressions_of(events.select(array.alias("elements")))
    is_hidden = False
    of_variable = replaced(body.child(), lambda part: variable if _is_attribute(part, element) else None)
    function = catalyst("LambdaFunction")(of_variable, sequence([variable]), is_hidden)
    failures = as_column(catalyst("ArrayTransform")(elements.child(), function))
    return F.get(F.filter(failures, lambda found: found.isNotNull()), lit(0))


def _inputs(expression: Any) -> Iterator[Any]:  # noqa: ANN401 - a Java object
    """Yield what the aggregates in an expression are computed of."""
    if kind_of(expression) == "AggregateExpression":
        for part in children(expression):
            # The function, and its filter if there is one.
            if part.equals(expression.aggregateFunction()):
                yield from children(part)
            else:
                yield part
        return
    for child in children(expression):
        yield from _inputs(child)


def _is_attribute(expression: Any, attribute: Any) -> bool:  # noqa: ANN401 - Java objects
    is_column = kind_of(expression) == "AttributeReference"
    return is_column and bool(expression.exprId().equals(attribute.exprId()))


def _is_tried(expression: Any) -> bool:  # noqa: ANN401 - a Java object
    try:
        return str(expression.evalMode()) == "TRY"
    except Py4JError:
        # Another version of Spark: the expression is then computed twice.
        return False


def _constant_raises(expression: Any) -> bool:  # noqa: ANN401 - a Java object
    try:
        expression.eval(None)
    except Py4JJavaError:
        return True
    return False


def _has_room(expression: Any, kind: str) -> bool:  # noqa: ANN401 - a Java object
    """Return whether the result of an addition or the like is never out of range."""
    name = str(expression.dataType().simpleString())
    if name in FLOATING:
        return True
    if not name.startswith("decimal"):
        return False
    return kind in {"UnaryMinus", "Abs"} or int(expression.dataType().precision()) < MAX_DIGITS


def _is_safe_cast(expression: Any) -> bool:  # noqa: ANN401 - a Java object
    source, target = expression.child().dataType(), expression.dataType()
    to, of = str(target.simpleString()), str(source.simpleString())
    if to in {"string", "binary"}:
        return True
    if to in FLOATING and (of in NUMBERS or of.startswith("decimal")):
        return True
    return bool(catalyst("Cast").canUpCast(source, target))


def is_event() -> Column:
    """Return whether a decoded record is one of the events that are read."""
    return col(EVENT_TYPE).isNotNull()
