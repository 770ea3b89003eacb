"""An expression of a declaration as SQL of DuckDB, for what both engines compute alike."""

from sqlglot import exp

from include.declarations.rules.expression import parsed
from include.errors import ReadModelError

# Left out on purpose: division, casts, regular expressions, times and lambdas, whose types or edge cases differ between the engines.
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
        if not isinstance(node, ALIKE) and not _is_date(node):
            raise ReadModelError(
                f"{text!r}: {node.sql('spark')} may have another result in DuckDB: test the declaration with Spark (docs/read-models.md)."
            )
    return (
        tree.transform(_nulls_as_in_spark)
        .transform(lambda node: _over(node, window))
        .sql("duckdb", identify=True)
    )


def _is_date(node: exp.Expr) -> bool:
    """Return whether a node is a part of `date_format` with a format that has no other meaning in DuckDB."""
    formatted = node if isinstance(node, exp.TimeToStr) else node.find_ancestor(exp.TimeToStr)
    return formatted is not None and formatted.args["format"].name.replace("strict", "") in DATE_FORMATS


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
