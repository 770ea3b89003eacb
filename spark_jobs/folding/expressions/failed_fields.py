"""The fields of an output that fail for an event: an expression raises an error, or Avro has no such value of the field's type."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, exists, length, lit, map_values, struct, when

from include.kafka.avro.avro_types import AvroType
from include.kafka.logical_types import LogicalType
from spark_jobs.folding.expressions.analysed import expressions_of
from spark_jobs.folding.expressions.avro_columns import branches, nullable
from spark_jobs.folding.expressions.failed_expressions import attempt, can_raise, is_never_null, named


def cannot_be_written(column: Column, one: AvroType) -> Column | None:
    """Return whether Avro has no such value of this type; None if it has every value. The column has the type of `written_type`."""
    kinds, is_nullable = branches(one)
    found = [] if is_nullable or not kinds else [column.isNull()]
    if len(kinds) == 1:
        inside = _part_cannot_be_written(column, kinds[0])
        found += [] if inside is None else [coalesce(inside, lit(False))]  # noqa: FBT003 - a column
    return _any(found)


def _part_cannot_be_written(column: Column, kind: AvroType) -> Column | None:
    logical = LogicalType.of(kind.definition)
    if kind.kind == "enum":
        return ~column.isin(list(kind.symbols))
    if kind.kind == "fixed" and (logical is None or logical.name != "decimal"):
        return length(column) != lit(kind.size)
    item = kind.items
    if item is not None:
        if cannot_be_written(column, item) is None:
            return None
        values = column if kind.kind == "array" else map_values(column)
        return exists(values, lambda value: coalesce(cannot_be_written(value, item), lit(False)))  # type: ignore[arg-type]  # noqa: FBT003
    parts = (cannot_be_written(column[field.name], field.type) for field in kind.fields)
    return _any([column.isNotNull() & part for part in parts if part is not None])


def _any(conditions: Sequence[Column]) -> Column | None:
    """Return whether one of the conditions holds; None without any."""
    found: Column | None = reduce(or_, conditions) if conditions else None
    return found


def field_failures(
    condition: Column,
    typed: Mapping[str, Column],
    types: Mapping[str, AvroType],
    frame: DataFrame,
    required: AbstractSet[str],
) -> list[Column]:
    """Return for each field its name if it fails: it raises an error, or Avro has no such value, where the condition holds.

    typed: the columns of the fields, with the types of `typed_columns`. types: their Avro types. frame: has what they are made of.
    required: the columns of the frame that are never null.
    """
    failures = []
    for name, expression in zip(typed, expressions_of(frame.select(*typed.values())), strict=True):
        kind = types[name]
        invalid = cannot_be_written(
            typed[name], nullable(kind) if is_never_null(expression, required) else kind
        )
        if can_raise(expression):
            tried = attempt(
                when(condition, struct((typed[name] if invalid is None else invalid).alias("checked")))
            )
            failed = tried.isNull() if invalid is None else tried.isNull() | tried["checked"]
            failures.append(named(f"field {name}", condition & failed))
        elif invalid is not None:
            failures.append(named(f"field {name}", condition & invalid))
    return failures
