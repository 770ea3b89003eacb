"""An expression of a declaration as SQL of DuckDB, for what both engines compute alike.

Whether a cast is exact depends on the type of its operand, which DuckDB knows when it plans the query: the SQL raises an error for any other
type than those for which the engines agree.
"""

from collections.abc import Iterable

from sqlglot import exp

from include.declarations.rules.expression import DIALECT, parsed
from include.errors import ReadModelError

# Left out on purpose: regular expressions and lambdas, and most divisions, casts and times, whose types or edge cases differ between the engines.
ALIKE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Star, exp.Paren, exp.Dot),
    *(
        exp.EQ,
        exp.NEQ,
        exp.LT,
        exp.LTE,
        exp.GT,
        exp.GTE,
        exp.NullSafeEQ,
        exp.NullSafeNEQ,
        exp.Is,
        exp.In,
        exp.Between,
    ),
    *(exp.And, exp.Or, exp.Not, exp.Add, exp.Sub, exp.Mul, exp.Neg),
    *(exp.Case, exp.If, exp.Coalesce, exp.Round, exp.Struct, exp.PropertyEQ, exp.ConcatWs, exp.Array),
    *(
        exp.Sum,
        exp.Count,
        exp.CountIf,
        exp.Min,
        exp.Max,
        exp.ArgMin,
        exp.ArgMax,
        exp.LogicalOr,
        exp.LogicalAnd,
    ),
    *(exp.Filter, exp.Where, exp.Distinct),
)
DATE_FORMATS = ("%Y-%m-%d", "%Y-%m", "%Y")
# Type in DuckDB -> how many digits its numbers have at most.
INTEGERS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
TIMES = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
MAX_DIGITS, MAX_INT = 38, 2**31 - 1
TRUNCATED_TO = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE")
# Spark limits the digits of their results in another way.
OF_DECIMALS = (exp.Add, exp.Sub, exp.Mul)


def duckdb_sql(text: str, window: str = "") -> str:
    """Return an expression as SQL of DuckDB.

    Args:
        text: the expression in Spark SQL.
        window: the name of a window over which its aggregates are computed; empty: they are those of a group.

    Raises:
        ReadModelError: the expression has a part that DuckDB may compute in another way, or its syntax is not valid.
    """
    tree = parsed(text).copy()
    for node in tree.walk():
        if not isinstance(node, ALIKE) and not _is_date(node) and not _is_typed(node):
            raise ReadModelError(
                f"{text!r}: {node.sql('spark')} may have another result in DuckDB: test the declaration with Spark (docs/how-to/test-a-rule.md)."
            )
    return (
        _with_types(tree)
        .transform(_nulls_as_in_spark)
        .transform(lambda node: _over(node, window))
        .sql("duckdb", identify=True)
    )


def _is_date(node: exp.Expr) -> bool:
    """Return whether a node is a `date_format` with a format that has no other meaning in DuckDB."""
    return isinstance(node, exp.TimeToStr) and node.args["format"].name.replace("strict", "") in DATE_FORMATS


def _nulls_as_in_spark(node: exp.Expr) -> exp.Expr:
    """Return `arg_max_null`, which takes a row whose value is null, as Spark's `max_by` does."""
    if not isinstance(node, exp.ArgMax | exp.ArgMin) or node.args.get("count") is not None:
        return node
    name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
    return exp.Anonymous(this=name, expressions=[node.this, node.expression])


def _over(node: exp.Expr, window: str) -> exp.Expr:
    """Return an aggregate as that of a window."""
    is_aggregate = isinstance(node, exp.AggFunc | exp.Filter) or (
        isinstance(node, exp.Anonymous) and node.name.startswith("arg_")
    )
    if not window or not is_aggregate:
        return node
    return exp.paren(exp.Window(this=node.copy(), alias=exp.to_identifier(window)))


def _is_typed(node: exp.Expr) -> bool:
    """Return whether a node, or the one that it is an argument of, is computed alike for some types."""
    if isinstance(node, exp.DataType | exp.DataTypeParam | exp.Var):
        node = node.find_ancestor(exp.Cast, exp.TimestampTrunc) or node
    return _of_types(node) is not None


def _with_types(tree: exp.Expr) -> exp.Expr:
    """Return the tree in which such nodes, from the inside to the outside, are an error for other types."""
    nodes = [(node, node.sql(DIALECT)) for node in tree.walk()]
    for node, text in reversed(nodes):
        found = _of_types(node)
        if found is None:
            continue
        types, result = found
        kind = exp.Anonymous(this="typeof", expressions=[node.this.copy()])
        is_known = exp.In(this=kind, expressions=[exp.Literal.string(one) for one in types])
        refused = exp.Literal.string(f"{text} may have another result in DuckDB")
        error = exp.Anonymous(this="error", expressions=[refused])
        typed = exp.Case(ifs=[exp.If(this=is_known, true=result)], default=error)
        if node is tree:
            return typed
        node.replace(typed)
    return tree


def _of_types(node: exp.Expr) -> tuple[Iterable[str], exp.Expr] | None:
    """Return the types of an operand for which the engines agree, and the node in DuckDB; None for any other node."""
    found: tuple[Iterable[str], exp.Expr] | None = None
    match node:
        case exp.Cast() if sources := _exact_sources(node):
            found = sources, exp.cast(node.this.copy(), node.to)
        case exp.TsOrDsToDate():
            found = (*TIMES, "DATE"), exp.cast(node.this.copy(), "DATE")
        case exp.TimeStrToTime():
            found = (*TIMES, "DATE"), exp.cast(node.this.copy(), "TIMESTAMP")
        case exp.Year() | exp.Month() | exp.Day() | exp.DayOfMonth():
            found = ("DATE",), exp.cast(node.copy(), "INT")
        case exp.Hour() | exp.Minute() | exp.Second():
            found = TIMES, exp.cast(node.copy(), "INT")
        case exp.TimestampTrunc() if node.unit is not None and node.unit.name in TRUNCATED_TO:
            # Of a timestamp without a zone, DuckDB makes a date.
            found = TIMES, exp.cast(node.copy(), "TIMESTAMP")
        case exp.IntDiv() if _is_positive(node.expression):
            found = INTEGERS, exp.cast(node.copy(), "BIGINT")
        case exp.Mod() if _is_positive(node.expression):
            found = INTEGERS, node.copy()
    return found


def _exact_sources(node: exp.Cast) -> tuple[str, ...]:
    """Return the types of DuckDB whose cast has the same result in both engines: it keeps the value."""
    to = node.to
    match to.this:
        case exp.DType.INT:
            return ("TINYINT", "SMALLINT", "INTEGER")
        case exp.DType.BIGINT:
            # A sum of integers; Spark fails where it is out of range, and so does the cast.
            return (*INTEGERS, "HUGEINT")
        case exp.DType.DATE:
            return (*TIMES, "DATE")
        case exp.DType.TEXT:
            # The scale of another decimal than an event's may differ; and DuckDB writes no zero before the point of one that is always below 1.
            of_events = _decimals(MAX_DIGITS, MAX_DIGITS, 1) if isinstance(node.this, exp.Column) else ()
            return ("VARCHAR", "BOOLEAN", "DATE", *INTEGERS, *of_events)
        case exp.DType.DECIMAL if len(to.expressions) == 2 and node.find_ancestor(*OF_DECIMALS) is None:  # noqa: PLR2004 - precision and scale
            precision, scale = (int(one.name) for one in to.expressions)
            whole = precision - scale
            return (*(one for one, digits in INTEGERS.items() if digits <= whole), *_decimals(whole, scale))
    return ()


def _decimals(whole: int, scale: int, least: int = 0) -> tuple[str, ...]:
    """Return the decimals with at most so many digits before, and after the point, and at least so many before it."""
    return tuple(
        f"DECIMAL({before + after},{after})"
        for after in range(scale + 1)
        for before in range(least, min(whole, MAX_DIGITS - after) + 1)
        if before + after
    )


def _is_positive(node: exp.Expr) -> bool:
    """Return whether a node is a positive literal of type INT."""
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return is_number and 0 < int(node.name) <= MAX_INT
