"""The Spark types of a version's state record, so that what every store holds is compared as one type."""

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import lit
from pyspark.sql.types import DataType, StructType

from include.declarations.read_model import ReadModel
from include.position import POSITION_COLUMNS


def record_type(spark: SparkSession, model: ReadModel, revision: int) -> StructType:
    """Return the type of a state record of this fold revision, as Spark's Avro reads it."""
    schema = model.state_schema_of(revision).text
    decoded = spark.range(0).select(from_avro(lit(b""), schema).alias("record"))
    found = decoded.schema["record"].dataType
    assert isinstance(found, StructType)  # noqa: S101 - an Avro record is one
    return found


def state_type(record: StructType) -> StructType:
    """Return the part that the fold gives."""
    return StructType([field for field in record.fields if field.name not in POSITION_COLUMNS])


def position_types(record: StructType) -> dict[str, DataType]:
    """Return the types of the position's fields."""
    return {name: record[name].dataType for name in POSITION_COLUMNS}
