"""An expression in SQL as Spark prints the column that functions of PySpark build for it: `sum(CASE WHEN =(a, 'x') THEN 1 END)`.

The fingerprint of a rule has this form, so that a state goes on when its rule is written as SQL instead of functions, or formatted in another
way. Only what is certain to mean the same is printed so; any other expression stands for itself, without its formatting.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from include.declarations.rules.expression import DIALECT, parsed


class _NoNotation(Exception):  # noqa: N818 - never leaves this module
    """The tree has a part that is printed as it is written."""


@lru_cache(maxsize=4096)
def notation(text: str) -> str:
    """Return an expression in this form, or, if it has none, its tokens with single spaces. Raises ReadModelError if its syntax is not valid."""
    try:
        return _printed(parsed(text))
    except _NoNotation:
        tokens = Dialect.get_or_raise(DIALECT).tokenize(text)
        return f"sql: {' '.join(text[token.start : token.end + 1] for token in tokens)}"


def _printed(node: exp.Expr) -> str:
    for kind, printed in _printers().items():
        if type(node) is kind:
            return printed(node)
    raise _NoNotation


def _all(nodes: list[exp.Expr]) -> str:
    return ", ".join(map(_printed, nodes))


def _call(name: str, *arguments: exp.Expr) -> str:
    return f"{name}({_all(list(arguments))})"


def _require_only(node: exp.Expr, *used: str) -> None:
    """Raise _NoNotation if a node has an argument, such as IGNORE NULLS, that is not printed."""
    if any(value and name not in used for name, value in node.args.items()):
        raise _NoNotation


@lru_cache(maxsize=1)
def _printers() -> Mapping[type[exp.Expr], Callable[[exp.Expr], str]]:
    def binary(symbol: str) -> Callable[[exp.Expr], str]:
        return lambda node: _call(symbol, node.this, node.expression)

    def unary(name: str) -> Callable[[exp.Expr], str]:
        def printed(node: exp.Expr) -> str:
            _require_only(node, "this", "big_int")
            return _call(name, node.this)

        return printed

    def pair(name: str) -> Callable[[exp.Expr], str]:
        def printed(node: exp.Expr) -> str:
            _require_only(node, "this", "expression")
            return _call(name, node.this, node.expression)

        return printed

    operators = {
        exp.EQ: "=",
        exp.LT: "<",
        exp.LTE: "<=",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.NullSafeEQ: "<=>",
        exp.Add: "+",
        exp.Sub: "-",
        exp.Mul: "*",
        exp.And: "and",
        exp.Or: "or",
    }
    functions = {
        exp.Sum: "sum",
        exp.Count: "count",
        exp.Min: "min",
        exp.Max: "max",
        exp.CountIf: "count_if",
        exp.LogicalOr: "bool_or",
        exp.LogicalAnd: "bool_and",
        exp.Neg: "negative",
        exp.Not: "!",
    }
    return {
        **{kind: binary(symbol) for kind, symbol in operators.items()},
        **{kind: unary(name) for kind, name in functions.items()},
        exp.ArgMax: pair("max_by"),
        exp.ArgMin: pair("min_by"),
        exp.Paren: lambda node: _printed(node.this),
        exp.Star: _star,
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: lambda node: "true" if node.this else "false",
        exp.Null: lambda _: "NULL",
        exp.Case: _case,
        exp.In: _in,
        exp.Dot: _dot,
        exp.Round: _round,
        exp.Coalesce: _coalesce,
        exp.Struct: _struct,
    }


def _star(node: exp.Expr) -> str:
    _require_only(node)
    return "*"


def _column(node: exp.Expr) -> str:
    # A quoted name may have a dot.
    if any(part.args.get("quoted") for part in node.parts):  # type: ignore[attr-defined]  # a property of Column
        raise _NoNotation
    return ".".join(part.name for part in node.parts)  # type: ignore[attr-defined]


def _literal(node: exp.Expr) -> str:
    text = str(node.this)
    if not node.is_string:
        return text
    if "\\" in text or "'" in text:
        raise _NoNotation
    return f"'{text}'"


def _case(node: exp.Expr) -> str:
    _require_only(node, "ifs", "default")
    branches = "".join(
        f" WHEN {_printed(one.this)} THEN {_printed(one.args['true'])}" for one in node.args["ifs"]
    )
    default = node.args.get("default")
    return f"CASE{branches}{f' ELSE {_printed(default)}' if default is not None else ''} END"


def _in(node: exp.Expr) -> str:
    _require_only(node, "this", "expressions")
    return _call("in", node.this, *node.expressions)


def _dot(node: exp.Expr) -> str:
    return f"{_printed(node.this)}['{node.expression.name}']"


def _round(node: exp.Expr) -> str:
    _require_only(node, "this", "decimals")
    return _call("round", node.this, *filter(None, [node.args.get("decimals")]))


def _coalesce(node: exp.Expr) -> str:
    _require_only(node, "this", "expressions")
    return _call("coalesce", node.this, *node.expressions)


def _struct(node: exp.Expr) -> str:
    columns = []
    for one in node.expressions:
        value = one.expression if isinstance(one, exp.PropertyEQ) else one
        if not isinstance(value, exp.Column) or value.name != one.name:
            raise _NoNotation
        columns.append(value)
    return _call("struct", *columns)
