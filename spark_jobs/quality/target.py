"""The target of a check, with the types that its records have in Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, lit, struct, when
from pyspark.sql.types import DataType, StringType, StructField, StructType

from include.declarations.read_model import KEY_COLUMN, ReadModel
from include.position import POSITION_COLUMNS
from include.replay.check.readings import PLACE
from include.replay.check.target import CheckTarget
from spark_jobs.folding.written_states import has_failed


@dataclass(frozen=True)
class RecordTypes:
    """The Spark types of a state record: `state`, its own fields, and `position`, those of its position."""

    state: StructType
    position: Mapping[str, DataType]

    @classmethod
    def of(cls, spark: SparkSession, model: ReadModel, revision: int) -> "RecordTypes":
        """Return the types of the records of a fold revision, as decoded by Spark."""
        schema = model.state_schema_of(revision).text
        decoded = spark.range(0).select(from_avro(lit(b""), schema).alias("record"))
        record = decoded.schema["record"].dataType
        assert isinstance(record, StructType)  # noqa: S101 - Spark decodes an Avro record as a struct
        state = StructType([field for field in record.fields if field.name not in POSITION_COLUMNS])
        return cls(state, {name: record[name].dataType for name in POSITION_COLUMNS})

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields, in order."""
        return (*self.state.fieldNames(), *POSITION_COLUMNS)

    @property
    def columns(self) -> StructType:
        """The columns of a table of records."""
        position = (StructField(name, self.position[name]) for name in POSITION_COLUMNS)
        return StructType([StructField(KEY_COLUMN, StringType()), *self.state, *position])

    def stored(self, place: Column, rows: DataFrame) -> DataFrame:
        """Return rows with a table's columns as rows of `stored` of a replica."""
        columns = (col(name).cast(kind).alias(name) for name, kind in self._types.items())
        return rows.select(place.alias(PLACE), col(KEY_COLUMN).alias("key"), *columns)

    def record_of(self, states: DataFrame) -> Column:
        """Return the record of a row of folded or merged states, a struct.

        The fields of a state that cannot be written are null.
        """
        is_written = ~has_failed(states)
        own = set(self.state.fieldNames())
        values = {name: col(name).cast(kind) for name, kind in self._types.items()}
        return struct(
            *(
                (when(is_written, value) if name in own else value).alias(name)
                for name, value in values.items()
            )
        )

    @property
    def _types(self) -> dict[str, DataType]:
        return {field.name: field.dataType for field in self.state} | dict(self.position)


@dataclass(frozen=True)
class Target(CheckTarget):
    """The target of a check with Spark. types: those of its records."""

    types: RecordTypes
