"""The columns of a declaration's expressions, their text for fingerprints, and the frames of decoded events that they refer to.

The internal names of the events' columns are those of include/declarations/event_types/event_columns.py.
"""

import re
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, col, expr, inline, struct

from include.declarations.event_types.event_columns import short_names
from include.declarations.rules.expression import Expression, Fields
from include.declarations.rules.notation import notation
from include.kafka.record_schema import RecordSchema

# Spark's names for the variables of a function passed to `transform`, `aggregate` or `filter`.
LAMBDA_VARIABLE = re.compile(r"\b([xyz])_\d+\b")


def column_of(expression: Expression) -> Column:
    """Return the column of an expression. Raises whatever a declaration's own function raises."""
    return expr(expression) if isinstance(expression, str) else expression()


def field_columns(fields: Fields) -> dict[str, Column]:
    """Return the column of each field. Raises as `column_of`."""
    found = fields if isinstance(fields, Mapping) else fields()
    return {name: expr(one) if isinstance(one, str) else one for name, one in found.items()}


def expression_text(expression: Expression | Column) -> str:
    """Return the text of an expression; the same for SQL and for functions that build the same column."""
    if isinstance(expression, str):
        return f"Column<'{notation(expression)}'>"
    return column_text(expression if isinstance(expression, Column) else expression())


def inner_text(text: str) -> str:
    """Return what is inside of `Column<'…'>`."""
    return text.removeprefix("Column<'").removesuffix("'>")


def field_texts(fields: Fields) -> dict[str, str]:
    """Return the text of the expression of each field, in the order of the names."""
    found = fields if isinstance(fields, Mapping) else fields()
    return {name: expression_text(one) for name, one in sorted(found.items())}


def column_text(column: Column) -> str:
    """Return a column as Spark prints it, with lambda variables (`x_12`) numbered from 0: Spark's own counter never resets."""
    text = str(column)
    if "->" not in text:
        return text
    numbers: dict[str, int] = {}
    return LAMBDA_VARIABLE.sub(lambda found: f"{found[1]}_{numbers.setdefault(found[0], len(numbers))}", text)


def with_short_names(events: DataFrame, readers: tuple[RecordSchema, ...]) -> DataFrame:
    """Return the events with each internal column under its short name, too. A plain rename, which Spark merges with what reads it."""
    present = set(events.columns)
    names = {short: internal for short, internal in short_names(readers).items() if internal in present}
    return events.select("*", *(col(internal).alias(short) for short, internal in names.items()))


def without_short_names(events: DataFrame, readers: tuple[RecordSchema, ...]) -> DataFrame:
    """Return the events without these names: a frame that is cached would have each event type twice."""
    names = short_names(readers)
    return events.select(*(name for name in events.columns if name not in names))


def with_name(events: DataFrame, short: str, internal: str) -> DataFrame:
    """Return the events with an internal column under a short name, which nothing else has then."""
    others = (name for name in events.columns if name.casefold() != short.casefold())
    return events.select(*others, col(internal).alias(short))


def evaluated_once(frame: DataFrame) -> DataFrame:
    """Return the same rows and columns, with each column computed once.

    Spark's optimiser replaces each use of a column, in filters and in later columns, with its expression. With several layers of columns,
    the plan, the time to make it, and the work for each row grow exponentially. The optimiser keeps columns that a generator returns, so
    the rows go through one. Source: CollapseProject and PushPredicateThroughNonJoin of Spark's optimiser.
    """
    return frame.select(inline(array(struct("*"))))
