"""The running query that takes what cannot be decoded from one source topic to its dead-letter topic."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.avro_schemas import RecordSchema
from spark_jobs.dead_letter import DeadLetterWriter
from spark_jobs.decode import EventColumns, dead_letters
from spark_jobs.fold_query import KafkaSource
from spark_jobs.known_schemas import KnownSchemas
from spark_jobs.supervised_query import Phase, Place, SupervisedQuery

# Bounds one batch's work, so that its share of the processor is never missed for long by the folds.
BATCH_EVENTS = 500_000


class DeadLetterQuery(SupervisedQuery):
    """The dead letters of one source topic; `readers` are the event types of all its read models."""

    def __init__(
        self,
        spark: SparkSession,
        place: Place,
        schemas: KnownSchemas,
        readers: tuple[RecordSchema, ...],
        partitions: int,
        interval_s: int,
    ) -> None:
        super().__init__(f"{place.source_topic}.dead-letter", spark, place, schemas)
        self._readers = readers
        self._partitions = partitions
        self._interval_s = interval_s
        self._writer: DeadLetterWriter | None = None

    def _start(self) -> tuple[StreamingQuery, Phase]:
        place = self._place
        source = KafkaSource(
            place.bootstrap_servers, place.source_topic, (("maxOffsetsPerTrigger", str(BATCH_EVENTS)),)
        )
        letters = dead_letters(
            EventColumns(self._readers, self._schemas.schema_ids).of(source.read(self._spark))
        )
        self._writer = DeadLetterWriter(place.bootstrap_servers, place.source_topic, self._partitions)
        query = (
            letters.writeStream.queryName(self.name)
            .foreachBatch(self._writer.write)
            .option("checkpointLocation", place.checkpoint)
            .trigger(processingTime=f"{self._interval_s} seconds")
            .start()
        )
        return query, Phase.MICRO_BATCHES
