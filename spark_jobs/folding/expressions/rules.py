"""The columns of a declaration's expressions, and their text for fingerprints."""

import re
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql.functions import expr

from include.declarations.rules.expression import Expression, Fields
from include.declarations.rules.notation import notation

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
