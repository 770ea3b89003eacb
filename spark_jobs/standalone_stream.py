"""Application: a standalone stream driver for any broker, which `./foldlake stream` launches (include/stream/standalone.py). Stops on SIGTERM."""

import argparse
import logging
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from include.declarations.load import load_catalog, read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError, SettingsError
from include.files import FileLockedError, file_lock
from include.kafka.log_reading import log_consumer
from include.kafka.record_schema import RecordSchema, schema_file
from include.kafka.schema_ids import SchemaIds
from include.kafka.topics import Topic, admin_client, changelog, dead_letter_topic, ensure_topics
from include.observability.logs import configure_logs
from include.process import die_with_parent
from include.settings import Settings
from include.spark.stream_config import stream_config
from include.stream.slot_planning import SlotRank, query_slots, shuffle_partitions
from include.stream.standalone import brokers, parser, standalone_settings
from spark_jobs.folding.fold_fingerprint import has_exact_sums, incompatibility, store_fingerprint
from spark_jobs.folding.fold_query import changelog_stream
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.routing.declared_failures import failure_checks
from spark_jobs.runtime.session import lower_compiler_priority, spark_session
from spark_jobs.streaming.query_set import QuerySet
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, TriggerSettings
from spark_jobs.streaming.specs.dead_letters import dead_letter_spec
from spark_jobs.streaming.stream_driver import StreamDriver, stop_on_signals, wait_for_slots

LOG = logging.getLogger("foldlake.stream")


def main() -> int:
    """Run until SIGTERM; returns the exit status."""
    configure_logs(Settings().log.format, "stream driver")
    # As in the stream driver.
    die_with_parent()
    lower_compiler_priority()
    arguments = parser().parse_args()
    state_dir: Path = arguments.state_dir
    try:
        # Two drivers must never write to the same checkpoint.
        with file_lock(state_dir / "driver.lock"):
            _run(arguments)
    except FileLockedError as error:
        LOG.error(  # noqa: TRY400 - a traceback would add nothing
            "Another stream driver (pid %s) uses %s: stop it, or choose another --state-dir.",
            error.holder,
            state_dir,
        )
        return 1
    except (FoldlakeError, TimeoutError) as error:
        LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
        return 1
    return 0


def _run(arguments: argparse.Namespace) -> None:
    settings = standalone_settings(arguments)
    partitions = settings.topics.partitions
    folders = settings.declaration_folders
    model = read_model(arguments.read_model or next(iter(load_catalog(folders).models)), folders)
    schemas = KnownSchemas(_writers(arguments.schema, model))
    topics = [
        changelog(arguments.changelog_topic, partitions),
        Topic(dead_letter_topic(arguments.source_topic), partitions),
    ]
    admin = admin_client(brokers(arguments))
    ensure_topics(admin, topics, settings.topics.replication_factor)
    spark = spark_session("foldlake-stream", stream_config(settings))
    slots = query_slots(settings.stream, partitions) + partitions
    wait_for_slots(spark, slots)
    with closing(log_consumer(brokers(arguments))) as consumer:
        specs = [
            _fold(spark, arguments, settings, model, schemas),
            dead_letter_spec(
                _endpoints(arguments, partitions, dead_letter_topic(arguments.source_topic), "dead-letter"),
                schemas,
                replace(model.events, topic=arguments.source_topic),
                failure_checks([model]),
                TriggerSettings.from_settings(settings.stream),
                consumer,
                admin,
            ),
        ]
        queries = QuerySet(spark, consumer, lambda: specs, slots)
        driver = StreamDriver(spark, queries, publisher=None)
        stop_on_signals(driver)
        driver.run()


def _endpoints(
    arguments: argparse.Namespace, partitions: int, sink_topic: str, checkpoint: str
) -> QueryEndpoints:
    path = str(arguments.state_dir.absolute() / checkpoint)
    return QueryEndpoints(brokers(arguments), arguments.source_topic, sink_topic, partitions, path)


def _fold(
    spark: SparkSession,
    arguments: argparse.Namespace,
    settings: Settings,
    model: ReadModel,
    schemas: KnownSchemas,
) -> QuerySpec:
    """Return the fold's query with the newest revision; raises SettingsError when it is incompatible with the state."""
    revision = model.newest_fold_revision
    endpoints = _endpoints(arguments, settings.topics.partitions, arguments.changelog_topic, "checkpoint")
    if reason := incompatibility(spark, endpoints.checkpoint, model, revision):
        raise SettingsError(
            f"{model.name} cannot be folded into --state-dir {arguments.state_dir}: {reason}, or choose another directory."
        )

    def records(source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        return changelog_stream(
            source,
            model,
            revision,
            schema_ids,
            arguments.state_schema_id,
            endpoints.partitions,
            is_exact=has_exact_sums(spark, endpoints.checkpoint),
        )

    return QuerySpec(
        name=f"{model.name}/alone",
        endpoints=endpoints,
        schemas=schemas,
        records=records,
        triggers=TriggerSettings.from_settings(settings.stream),
        prepare=partial(store_fingerprint, spark, endpoints.checkpoint, model, revision),
        shuffle_partitions=shuffle_partitions(settings.stream, endpoints.partitions),
        task_slots=query_slots(settings.stream, endpoints.partitions),
        slot_rank=(SlotRank.SERVING, 0),
    )


def _writers(options: list[str], model: ReadModel) -> dict[int, RecordSchema]:
    writers = {}
    for option in options:
        number, _, path = option.partition("=")
        if not number.isdigit() or not path:
            raise SettingsError(
                f"--schema {option!r} is not of the form ID=FILE, for example 1=FundsAdded.avsc."
            )
        writers[int(number)] = schema_file(Path(path))
    if not {schema.name for schema in writers.values()} & set(model.event_types):
        raise SettingsError(
            f"No --schema is of an event type of {model.name}: pass one of {', '.join(model.event_types)}."
        )
    return writers


if __name__ == "__main__":
    sys.exit(main())
