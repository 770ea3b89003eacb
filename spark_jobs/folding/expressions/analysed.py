"""Spark's expressions, which PySpark does not expose: those of a frame, the parts of one, and columns that are made of others."""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame

EXPRESSIONS = "org.apache.spark.sql.classic.ExpressionUtils"


def expressions_of(frame: DataFrame) -> list[Any]:
    """Return the analysed expressions of a frame that is the result of `select`, in order."""
    jdf: Any = frame._jdf  # noqa: SLF001 - PySpark does not expose the analysed expressions
    found = jdf.queryExecution().analyzed().expressions()
    return [found.apply(i) for i in range(found.size())]


def aggregates_of(frame: DataFrame) -> list[Any]:
    """Return the analysed expressions of a grouped aggregation, in the order of its columns."""
    jdf: Any = frame._jdf  # noqa: SLF001 - as above
    found = jdf.queryExecution().analyzed().aggregateExpressions()
    return [found.apply(i) for i in range(found.size())]


def kind_of(expression: Any) -> str:  # noqa: ANN401 - a Java object
    """Return the name of an expression's class, such as `AttributeReference`."""
    return str(expression.getClass().getSimpleName())


def as_column(expression: Any) -> Column:  # noqa: ANN401 - a Java object
    """Return an analysed expression as a column of the frame that it was analysed for."""
    return Column(java_class(EXPRESSIONS).column(expression))


def as_expression(column: Column) -> Any:  # noqa: ANN401 - a Java object
    """Return a column as an expression that need not be analysed yet."""
    return java_class(EXPRESSIONS).expression(column._jc)  # noqa: SLF001 - as above


def catalyst(name: str) -> Any:  # noqa: ANN401 - Java
    """Return the class of one of Spark's expressions."""
    return java_class(f"org.apache.spark.sql.catalyst.expressions.{name}")


def decimal_type(precision: int, scale: int) -> Any:  # noqa: ANN401 - Java
    """Return Spark's type of these decimals."""
    return java_class("org.apache.spark.sql.types.DecimalType")(precision, scale)


def replaced(expression: Any, replacement: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - Java objects
    """Return an expression in which each part is replaced for which the function returns another one, instead of None."""
    other = replacement(expression)
    if other is not None:
        return other
    parts = [replaced(child, replacement) for child in children(expression)]
    if not parts:
        return expression
    return expression.withNewChildren(sequence(parts))


def sequence(items: list[Any]) -> Any:  # noqa: ANN401 - Java
    """Return a Scala sequence."""
    return java_class("org.apache.spark.api.python.PythonUtils").toSeq(items)


def children(expression: Any) -> Iterator[Any]:  # noqa: ANN401 - a Java object
    """Yield the parts of an expression."""
    found = expression.children()
    for i in range(found.size()):
        yield found.apply(i)


def java_class(name: str) -> Any:  # noqa: ANN401 - Java
    """Return a class by its whole name, with one request to the JVM. A path of attributes makes one for each part of the name.

    For the first plan of a fold, such paths took 457 requests, and a tenth of the time.
    """
    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - SQL functions have no such expressions
    return getattr(context._jvm, name)  # noqa: SLF001 - as above
