"""The merge of partial states, derived from a fold in SQL: each aggregate that is a whole field becomes the merge of this field.

A field over such aggregates is merged by the same expression over their merges: `coalesce(sum(a), 0)` needs the field `sum(a)` in the state.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlglot import exp

from include.declarations.rules.expression import DIALECT, parsed

# The sum of rounded sums is not the rounded sum.
INEXACT = frozenset({"float", "double"})


def derived_merge(fold: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the merge of a fold: state field -> expression over the fields of several states; None if it cannot be derived.

    types: the Avro type of each state field. Raises ReadModelError if the fold's syntax is not valid.
    """
    return _derived(
        tuple(sorted(fold.items())), frozenset(name for name, one in types.items() if _is_inexact(one))
    )


@lru_cache(maxsize=256)
def _derived(fold: tuple[tuple[str, str], ...], inexact: frozenset[str]) -> dict[str, str] | None:
    trees = {name: parsed(text) for name, text in fold}
    # An aggregate that is a whole field, as SQL -> the field.
    fields: dict[str, str] = {}
    for name, tree in trees.items():
        if _merge_of(name, tree, is_exact=name not in inexact) is not None:
            fields.setdefault(tree.sql(DIALECT), name)

    def marked(node: exp.Expr) -> exp.Expr:
        field = fields.get(node.sql(DIALECT))
        return node if field is None else exp.Placeholder(this=field)

    def merged(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Placeholder):
            return node
        merge = _merge_of(node.name, trees[node.name], is_exact=True)
        assert merge is not None  # noqa: S101 - only such fields are marked
        return merge

    merges = {}
    for name, tree in trees.items():
        rest = tree.transform(marked)
        # What remains is of the events, even if a field of the state has the same name.
        if rest.find(exp.Column, exp.AggFunc, exp.Anonymous) is not None:
            return None
        merges[name] = rest.transform(merged).sql(DIALECT)
    return merges


def _merge_of(name: str, tree: exp.Expr, *, is_exact: bool) -> exp.Expr | None:
    """Return the merge of a field whose whole expression is one aggregate; None if it has none."""
    aggregate = tree.this if isinstance(tree, exp.Filter) else tree
    if aggregate.find(exp.Distinct) is not None:
        return None
    field = exp.column(name)
    match aggregate:
        case exp.Count() | exp.CountIf():
            return exp.Sum(this=field)
        case exp.Sum():
            return exp.Sum(this=field) if is_exact else None
        # With a second argument, they return an array.
        case exp.Max() | exp.Min() if not aggregate.expressions:
            return type(aggregate)(this=field)
        case exp.LogicalOr() | exp.LogicalAnd():
            return type(aggregate)(this=field)
    return None


def _is_inexact(avro_type: Any) -> bool:  # noqa: ANN401 - JSON of any shape
    if isinstance(avro_type, list):
        return any(map(_is_inexact, avro_type))
    return avro_type in INEXACT if isinstance(avro_type, str) else _is_inexact(avro_type["type"])
