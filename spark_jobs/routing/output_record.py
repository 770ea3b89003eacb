"""The record of an output with a schema of its own: its key and its value, and the events for which it cannot be made."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, concat, lit, when

from include.declarations.rules.expression import Expression
from include.errors import ReadModelError
from include.kafka.avro.avro_types import without_null
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import header
from spark_jobs.folding.expressions.analysed import expressions_of
from spark_jobs.folding.expressions.avro_columns import avro_record, field_types, typed_columns
from spark_jobs.folding.expressions.columns import column_of
from spark_jobs.folding.expressions.failed_expressions import (
    attempt,
    can_raise,
    first_failure,
    is_event,
    named,
    raises,
)
from spark_jobs.folding.expressions.failed_fields import field_failures


def require_fields(writer: str, schema: RecordSchema, fields: Mapping[str, Column]) -> None:
    """Raise ReadModelError unless the columns are those of the schema's fields."""
    if sorted(fields) != sorted(schema.fields):
        raise ReadModelError(
            f"{writer} gives {sorted(fields)}, but {schema.full_name} has {sorted(schema.fields)}."
        )


def harmless(column: Column, events: DataFrame) -> Column:
    """Return the column, with null in place of an error: what is made of it may be computed for events that are not written."""
    (expression,) = expressions_of(events.select(column.alias("checked")))
    return attempt(when(is_event(), column)) if can_raise(expression) else column


def output_failure(
    where: Expression | None,
    events: DataFrame,
    of_outputs: Callable[[Column], Sequence[Column]],
) -> Column | None:
    """Return what of a declaration fails for a decoded event; null if nothing does, None if nothing can.

    where: builds its condition. of_outputs: returns what else may fail, for the events that satisfy a given condition.
    """
    failures: list[Column] = []
    applies = is_event()
    if where is not None:
        condition = column_of(where)
        (expression,) = expressions_of(events.select(condition.alias("checked")))
        if can_raise(expression):
            failures.append(named("where", raises(applies, condition)))
            condition = attempt(when(applies, condition))
        applies = applies & coalesce(condition, lit(False))  # noqa: FBT003 - a column
    return first_failure([*failures, *of_outputs(applies)])


def record_failures(
    writer: str,
    schema: RecordSchema,
    fields: Mapping[str, Column],
    applies: Column,
    events: DataFrame,
    required: AbstractSet[str],
) -> list[Column]:
    """Return the name of each field of an output that fails, for events that satisfy the condition `applies`; the key must not be null."""
    types = field_types(schema)
    types[str(schema.key_field)] = without_null(types[str(schema.key_field)])
    return field_failures(applies, typed_columns(writer, schema, fields, events), types, events, required)


def output_key(key: Column) -> Column:
    """Return the key in bytes."""
    return key.cast("string").cast("binary")


def output_value(
    writer: str, schema: RecordSchema, schema_id: int, fields: Mapping[str, Column], events: DataFrame
) -> Column:
    """Return the record in Confluent's wire format; raises ReadModelError for a column that is nothing that its field can have."""
    return concat(lit(header(schema_id)), avro_record(writer, schema, fields, events))
