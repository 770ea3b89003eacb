"""An expression of a declaration: a string of Spark SQL, or a function that builds columns.

Spark computes a string as it is written. sqlglot parses it for checks without Spark, and for everything that is derived from a rule. A function
is opaque until Spark has called it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import sqlglot
from sqlglot import exp

from include.errors import ReadModelError

if TYPE_CHECKING:
    from pyspark.sql import Column
DIALECT = "spark"

Expression: TypeAlias = str | Callable[[], "Column"]
# Field -> its expression, or a function that returns this mapping.
Fields: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, "str | Column"]]


@dataclass(frozen=True)
class UsedColumn:
    """A column that an expression uses. parts: its name, and those of fields inside of it. start: its first character, from 0."""

    parts: tuple[str, ...]
    start: int

    @property
    def name(self) -> str:
        """The name as written in SQL."""
        return ".".join(self.parts)


@lru_cache(maxsize=4096)
def parsed(text: str) -> exp.Expr:
    """Return the tree of an expression in Spark SQL.

    Raises ReadModelError, with the place, if its syntax is not valid, or if it is a query.
    """
    try:
        tree = sqlglot.parse_one(text, read=DIALECT)
    except sqlglot.errors.ParseError as error:
        if not error.errors:
            raise ReadModelError(f"{text!r}: {str(error).rstrip('.')}.") from error
        first = error.errors[0]
        description = str(first["description"]).rstrip(".")
        raise ReadModelError(
            f"{text!r}: line {first['line']}, column {first['col']}: {description}."
        ) from error
    except sqlglot.errors.SqlglotError as error:
        raise ReadModelError(f"{text!r}: {str(error).rstrip('.')}.") from error
    # sqlglot has no common class of these.
    values = (exp.Condition, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Interval)
    if not isinstance(tree, values) or tree.find(exp.Query) is not None:
        raise ReadModelError(f"{text!r} is not one expression: give one value, without SELECT, AS or ';'.")
    return tree


def used_columns(text: str) -> list[UsedColumn]:
    """Return the columns that an expression uses, in its order; parameters of lambdas are no columns. Raises ReadModelError as `parsed`."""
    found = []
    for column in parsed(text).find_all(exp.Column):
        identifiers = [part for part in column.parts if isinstance(part, exp.Identifier)]
        starts = [int(part.meta["start"]) for part in identifiers if "start" in part.meta]
        found.append(
            UsedColumn(tuple(part.name for part in identifiers), min(starts, default=_start_of(column)))
        )
    return sorted(found, key=lambda one: one.start)


def place(text: str, start: int) -> str:
    """Return where a character of a text is, for a message: `line 1, column 5`."""
    line = text.count("\n", 0, start) + 1
    return f"line {line}, column {start - text.rfind(chr(10), 0, start)}"


def _start_of(column: exp.Expr) -> int:
    return int(column.meta.get("start", 0))
