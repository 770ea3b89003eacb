"""The Spark types of a version's state record, so that records of every store are compared with the same types."""

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import lit
from pyspark.sql.types import DataType, StructType

from include.declarations.read_model import ReadModel
from include.position import POSITION_COLUMNS


def record_type(spark: SparkSession, model: ReadModel, revision: int) -> StructType:
    """Return the type of a state record of this fold revision, as decoded by Spark."""
    schema = model.state_schema_of(revision).text
    decoded = spark.range(0).select(from_avro(lit(b""), schema).alias("record"))
    found = decoded.schema["record"].dataType
    assert isinstance(found, StructType)  # noqa: S101 - Spark decodes an Avro record as a struct
    return found


def state_type(record: StructType) -> StructType:
    """Return the type of the fields that the fold computes."""
    return StructType([field for field in record.fields if field.name not in POSITION_COLUMNS])


def position_types(record: StructType) -> dict[str, DataType]:
    """Return the types of the position fields."""
    return {name: record[name].dataType for name in POSITION_COLUMNS}
