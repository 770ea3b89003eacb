"""The record of an output with a schema of its own: its key and its value."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, concat, lit, raise_error

from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import header
from spark_jobs.folding.expressions.avro_columns import avro_record


def require_fields(writer: str, schema: RecordSchema, fields: Mapping[str, Column]) -> None:
    """Raise ReadModelError unless the columns are those of the schema's fields."""
    if sorted(fields) != sorted(schema.fields):
        raise ReadModelError(
            f"{writer} gives {sorted(fields)}, but {schema.full_name} has {sorted(schema.fields)}."
        )


def output_key(writer: str, key: Column, what: str) -> Column:
    """Return the key in bytes; the query fails at an output whose key is null. what: names the key in the message."""
    missing = raise_error(lit(f"{writer} gives no key ({what} is null)."))
    return coalesce(key.cast("string").cast("binary"), missing.cast("binary"))


def output_value(
    writer: str, schema: RecordSchema, schema_id: int, fields: Mapping[str, Column], events: DataFrame
) -> Column:
    """Return the record in Confluent's wire format; raises ReadModelError for a column that is nothing that its field can have."""
    return concat(lit(header(schema_id)), avro_record(writer, schema, fields, events))
