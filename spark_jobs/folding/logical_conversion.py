"""Reads a writer's schema as an event type: whether both decoders can, and the columns, with other logical types converted."""

import json
import logging
from functools import lru_cache
from typing import Any

import fastavro
from pyspark.sql import Column, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import date_trunc, lit, when

from include.kafka.logical_types import Comparison, LogicalType, compare, decoded_as, field_types
from include.kafka.record_schema import RecordSchema

LOG = logging.getLogger(__name__)
MAX_REASON_CHARACTERS = 300


def comparison_of(writer: RecordSchema, reader: RecordSchema) -> Comparison:
    """Return how a writer's schema differs from an event type; its problem includes whatever one of the decoders refuses."""
    found = compare(writer, reader)
    if found.problem is not None or writer.text == reader.text or SparkSession.getActiveSession() is None:
        return found
    problem = _problem(writer, reader)
    return found if problem is None else Comparison(problem=problem)


@lru_cache(maxsize=4096)
def is_readable(writer: RecordSchema) -> bool:
    """Return whether Spark can read records with this schema as they were written."""
    if writer.problem is not None:
        return False
    try:
        _types(_java(), writer.text)
    except Exception as error:  # noqa: BLE001 - as below
        LOG.warning("records with a schema of %s are not read: %s", writer.full_name, _reason(error))
        return False
    return True


@lru_cache(maxsize=4096)
def _problem(writer: RecordSchema, reader: RecordSchema) -> str | None:
    """Return why the decoders cannot use a schema. Cached: a query compares all of its topic's schemas whenever it starts."""
    found = compare(writer, reader)
    wanted = decoded_as(reader, found).renamed_like(writer)
    jvm = _java()
    try:
        fastavro.parse_schema(wanted.parsed())
        # The executors parse it too, where an error would make each record an undecodable one.
        _parsed(jvm, writer.text)
        # Without a conversion, Spark reads the event type's own schema, which its declaration has proved.
        own = decoded_as(reader, Comparison())
        ours, theirs = ((_types(jvm, schema.text) if found.converted else {}) for schema in (own, wanted))
    except Exception as error:  # noqa: BLE001 - a foreign schema can raise anything; it concerns the records with its id only
        return f"the schema cannot be used ({_reason(error)})"
    for name, expected in ours.items():
        read_as = theirs[name]
        if read_as != expected and not (
            name in found.converted and _is_decimal(expected) and _is_decimal(read_as)
        ):
            return f"{name} would be read as {read_as}, not as {expected}"
    return None


def _java() -> Any:  # noqa: ANN401 - objects of Java
    return SparkSession.active().sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to Avro's own parser


def _reason(error: Exception) -> str:
    message = str(getattr(error, "java_exception", error))
    return message.partition("\n")[0][:MAX_REASON_CHARACTERS]


def _parsed(jvm: Any, text: str) -> Any:  # noqa: ANN401 - objects of Java
    return getattr(jvm.org.apache.avro, "Schema$Parser")().parse(text)


def _types(jvm: Any, text: str) -> dict[str, Any]:  # noqa: ANN401 - objects of Java
    """Return field -> Spark's type of it, as JSON."""
    record = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(_parsed(jvm, text)).dataType()
    return {declared["name"]: declared["type"] for declared in json.loads(record.json())["fields"]}


def _is_decimal(spark_type: Any) -> bool:  # noqa: ANN401 - JSON of any shape
    return isinstance(spark_type, str) and spark_type.startswith("decimal(")


def event_column(
    payload: Column, writer: RecordSchema, reader: RecordSchema, comparison: Comparison
) -> Column:
    """Return the payloads of a writer's schema as structs with the reader's types; null if they cannot be read."""
    wanted = decoded_as(reader, comparison).renamed_like(writer)
    decoded = from_avro(payload, writer.text, {"mode": "PERMISSIVE", "avroSchema": wanted.text})
    return converted(decoded, reader, comparison)


def converted(decoded: Column, reader: RecordSchema, comparison: Comparison) -> Column:
    """Return the decoded struct with the reader's types; null if a value does not fit its type."""
    wanted = {name: LogicalType.of(field_types(reader)[name].definition) for name in comparison.converted}
    result, fits = decoded, lit(True)  # noqa: FBT003 - a literal column
    for name, logical in wanted.items():
        value = decoded[name]
        new = _as(value, logical)
        fits = fits & (value.isNull() | new.isNotNull())
        result = result.withField(name, new)
    return when(decoded.isNotNull() & fits, result) if wanted else decoded


def _as(value: Column, logical: LogicalType | None) -> Column:
    if logical is None:
        return value
    if logical.name == "decimal":
        return value.try_cast(f"decimal({logical.precision},{logical.scale})")
    if logical.name.endswith("-millis"):
        # Avro's reader of states truncates as well, so a state from a batch equals one from the changelog.
        truncated = date_trunc("millisecond", value)
        return truncated.cast("timestamp_ntz") if logical.name.startswith("local-") else truncated
    return value
