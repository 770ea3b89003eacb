"""Converts the fields that a writer has in another logical type, such as a decimal of a smaller scale, to the reader's types."""

from pyspark.sql import Column
from pyspark.sql.functions import date_trunc, lit, when

from include.kafka.logical_types import Comparison, LogicalType, field_types
from include.kafka.record_schema import RecordSchema


def converted(decoded: Column, reader: RecordSchema, comparison: Comparison) -> Column:
    """Return the decoded struct with the reader's types; null if a value does not fit its type."""
    wanted = {name: LogicalType.of(field_types(reader)[name]) for name in comparison.converted}
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
