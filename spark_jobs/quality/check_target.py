"""The target of a check: the version, its fold, and the cut, which is the end offsets of the source when the check starts."""

import time

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import lit
from pyspark.sql.types import DataType, StructType

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.kafka.log_reading import log_consumer
from include.position import POSITION_COLUMNS
from include.quality.check import CheckRequest, StoreName
from include.quality.checked_version import checked_version
from include.quality.log_bounds import lost_partitions
from include.rebuild.progress.stage_progress import StageReporter
from include.rebuild.stages.build import VERIFY
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version
from spark_jobs.folding.replay import source_ends
from spark_jobs.quality.stores.base import Target


def target_of(spark: SparkSession, settings: Settings, request: CheckRequest) -> Target:
    """Return the target of a check.

    Raises QualityError when the version does not exist, UnknownReadModelError, KafkaUnavailableError.
    """
    model = read_model(request.read_model, settings.declaration_folders)
    version = _version(settings.kafka.bootstrap_servers, request)
    model = model.reading(version.source_topic, version.starts)
    record = record_type(spark, model, version.fold_revision)
    # Before the cut: an event below it may be newer than this.
    cut_at_s = time.time()
    return Target(
        spark,
        settings,
        model,
        version,
        source_ends(settings.kafka.bootstrap_servers, model.source_topic),
        version.is_active,
        state_type(record),
        position_types(record),
        cut_at_s,
        report=_reporter(settings, request),
    )


def _reporter(settings: Settings, request: CheckRequest) -> StageReporter | None:
    """Return what publishes the progress if the check is the stage of a rebuild."""
    if request.version is None or StoreName.STAGING not in request.stores:
        return None
    return StageReporter(
        settings.kafka.bootstrap_servers,
        settings.topics.replication_factor,
        request.read_model,
        request.version,
        VERIFY.name,
    )


def lost_events(target: Target) -> dict[int, int]:
    """Return source partition -> first offset still in the log, for partitions that have lost the first events that the version folds."""
    consumer = log_consumer(target.settings.kafka.bootstrap_servers)
    try:
        lost = lost_partitions(consumer, target.model.source_topic, len(target.cut))
        return {p: first for p, first in lost.items() if first > target.model.starts.of(p)}
    finally:
        consumer.close()


def _version(bootstrap_servers: str, request: CheckRequest) -> Version:
    with VersionRegistry(bootstrap_servers) as registry:
        return checked_version(registry.read().get(request.read_model), request)


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
