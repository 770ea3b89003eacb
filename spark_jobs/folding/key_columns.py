"""The event columns that a read model's key refers to, as resolved by Spark; the event's entity must be among them."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import StringType

from include.declarations.event_types.event_columns import resolved
from include.declarations.key_rule import require_entity, require_event_fields
from include.declarations.read_model import ReadModel
from include.kafka.schema_ids import SchemaIds
from spark_jobs.folding.decode import EventDecoder
from spark_jobs.folding.expressions.analysed import children, expressions_of, kind_of
from spark_jobs.folding.expressions.columns import column_of, expression_text, inner_text

KAFKA_COLUMNS = {
    "key": "binary",
    "value": "binary",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
}


def require_entity_key(spark: SparkSession, model: ReadModel) -> None:
    """Raise ReadModelError if a read model's key lacks the entity of one of its event types, or does not survive re-keying.

    Raises Spark's AnalysisException if the key refers to a column that the events do not have.
    """
    keyed = [schema for schema in model.event_schemas if schema.key_field is not None]
    if not keyed and model.rekeyed_from is None:
        return
    columns = key_columns(spark, model)
    key = inner_text(expression_text(model.key))
    if model.rekeyed_from is not None:
        require_event_fields(model.name, key, columns)
    for schema in keyed:
        require_entity(model.name, schema, key, columns)


def key_columns(spark: SparkSession, model: ReadModel) -> list[str]:
    """Return the event columns that a read model's key refers to: `<field>`, `event:<EventType>.<field>` or `record:<name>`, sorted."""
    (key,) = expressions_of(_no_events(spark, model).select(column_of(model.key)))
    return sorted({resolved(column, model.event_schemas) for column in referenced_columns(key)})


def is_record_key(spark: SparkSession, model: ReadModel) -> bool:
    """Return whether a read model's key is the Kafka key of its events' records, so that it determines their partition."""
    if model.rekeyed_from is not None:
        return True
    key = _no_events(spark, model).select(column_of(model.key))
    (expression,) = expressions_of(key)
    if kind_of(expression) != "AttributeReference" or key.schema[0].dataType != StringType():
        return False
    return {schema.key_field for schema in model.event_schemas} == {str(expression.name())}


def _no_events(spark: SparkSession, model: ReadModel) -> DataFrame:
    """Return an empty frame with the columns that key and fold can use."""
    nulls = (lit(None).cast(kind).alias(name) for name, kind in KAFKA_COLUMNS.items())
    schema_ids = SchemaIds(dict(enumerate(model.event_schemas)))
    return EventDecoder(model.event_schemas, schema_ids, partitions=1).decode(spark.range(0).select(*nulls))


def referenced_columns(expression: Any) -> set[str]:  # noqa: ANN401 - a Java object
    """Return the names of the columns in a resolved expression; for a field of a struct, `<struct>.<field>`."""
    kind = kind_of(expression)
    if kind == "AttributeReference":
        return {str(expression.name())}
    if kind == "GetStructField":
        return {f"{name}.{expression.extractFieldName()}" for name in referenced_columns(expression.child())}
    return {name for child in children(expression) for name in referenced_columns(child)}
