"""The stream driver alone, against any broker: one read model, no Airflow, no version registry, no schema registry.

For comparing with other engines and for trying a fold; what folds is the same code. Stops on SIGTERM.
"""

import argparse
import fcntl
import logging
import sys
from pathlib import Path
from typing import TextIO

from include.declarations.read_model import ReadModel, read_model
from include.errors import FoldlakeError, SettingsError
from include.kafka.log_reading import log_consumer
from include.kafka.record_schema import RecordSchema, schema_file
from include.kafka.topics import (
    Topic,
    admin_client,
    changelog,
    dead_letter_topic,
    ensure_topics,
    partition_count,
)
from include.settings import Settings
from include.spark.stream_config import stream_config, stream_master
from include.stream.slot_planning import task_slots
from spark_jobs.folding.fold_fingerprint import incompatibility
from spark_jobs.folding.schema_cache import FixedSchemas
from spark_jobs.runtime.session import spark_session
from spark_jobs.streaming.dead_letter_query import DeadLetterQuery
from spark_jobs.streaming.stream_driver import StreamDriver, log_driver, stop_on_signals, wait_for_slots
from spark_jobs.streaming.supervised_query import QueryEndpoints, SupervisedQuery
from spark_jobs.streaming.topic_query import TriggerSettings
from spark_jobs.streaming.version_query import FoldPlan, VersionQuery

LOG = logging.getLogger("foldlake.stream")
JARS = "jars/stream"


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    p = argparse.ArgumentParser(prog="foldlake stream", description=__doc__)
    p.add_argument("--bootstrap", required=True, help="Kafka's bootstrap servers, host:port[,host:port]")
    p.add_argument("--source-topic", required=True, help="topic of the events; must exist")
    p.add_argument("--changelog-topic", required=True, help="topic for the state records; made when missing")
    p.add_argument(
        "--state-dir", required=True, type=Path, help="folder for the checkpoint; continued when it has one"
    )
    p.add_argument(
        "--schema",
        action="append",
        required=True,
        metavar="ID=FILE",
        help="Avro schema file of an event type and the id in its records' framing; repeat for each",
    )
    p.add_argument(
        "--state-schema-id", type=int, default=0, help="id in the framing of the state records (0)"
    )
    p.add_argument("--read-model", default="balance", help="the read model to fold (balance)")
    p.add_argument("--master", default="", help="Spark master (local, with a slot for each task)")
    p.add_argument(
        "--jars-dir", type=Path, default=None, help="folder of the Kafka and Avro jars (prepared ones)"
    )
    return p


def main() -> int:
    """Run until SIGTERM; returns the exit status."""
    log_driver()
    arguments = parser().parse_args()
    try:
        with _exclusive(arguments.state_dir):
            _run(arguments)
    except (FoldlakeError, TimeoutError) as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is all that is to be said
        return 1
    return 0


def _run(arguments: argparse.Namespace) -> None:
    partitions = _partitions(arguments.bootstrap, arguments.source_topic)
    settings = Settings().changed(
        partitions=partitions, stream_spare_queries=0, stream_master=arguments.master
    )
    model = read_model(arguments.read_model, settings.read_models_dir)
    schemas = FixedSchemas(_writers(arguments.schema, model))
    admin = admin_client(arguments.bootstrap)
    topics = [
        changelog(arguments.changelog_topic, partitions),
        Topic(dead_letter_topic(arguments.source_topic), partitions),
    ]
    ensure_topics(admin, topics, settings.topics.replication_factor)
    jars = sorted((arguments.jars_dir or settings.tools / JARS).glob("*.jar"))
    config = stream_config(settings) | {"spark.local.dir": str(arguments.state_dir.absolute() / "tmp")}
    master = stream_master(settings.changed(stream_master=arguments.master))
    spark = spark_session("foldlake-stream", config, master, jars)
    wait_for_slots(spark, task_slots(settings))
    checkpoint = str(arguments.state_dir.absolute() / "checkpoint")
    if reason := incompatibility(spark, checkpoint, model, model.newest_fold_revision):
        raise SettingsError(
            f"{model.name} cannot be folded into --state-dir {arguments.state_dir}: {reason}, or give another folder."
        )
    consumer = log_consumer(arguments.bootstrap)

    def place(sink_topic: str, checkpoint: str) -> QueryEndpoints:
        root = arguments.state_dir.absolute()
        return QueryEndpoints(
            arguments.bootstrap, arguments.source_topic, sink_topic, partitions, str(root / checkpoint)
        )

    fold = VersionQuery(
        f"{model.name}/alone",
        spark,
        place(arguments.changelog_topic, "checkpoint"),
        schemas,
        TriggerSettings.of(settings),
        consumer,
        FoldPlan(model, model.newest_fold_revision, arguments.state_schema_id),
    )
    letters = DeadLetterQuery(
        spark,
        place(dead_letter_topic(arguments.source_topic), "dead-letter"),
        schemas,
        TriggerSettings.of(settings),
        consumer,
        model.event_schemas,
    )
    queries: dict[str, SupervisedQuery] = {fold.name: fold}
    driver = StreamDriver(spark, lambda _running: queries, [letters], publisher=None)
    stop_on_signals(driver)
    driver.run()


def _partitions(bootstrap: str, topic: str) -> int:
    found = partition_count(admin_client(bootstrap), topic)
    if found is None:
        raise SettingsError(
            f"There is no topic {topic!r} at {bootstrap}: create it, or correct --source-topic."
        )
    return found


def _writers(options: list[str], model: ReadModel) -> dict[int, RecordSchema]:
    writers = {}
    for option in options:
        number, _, path = option.partition("=")
        if not number.isdigit() or not path:
            raise SettingsError(f"--schema {option!r} is not ID=FILE, such as 1=FundsAdded.avsc.")
        writers[int(number)] = schema_file(Path(path))
    if not {schema.name for schema in writers.values()} & set(model.event_types):
        raise SettingsError(
            f"None of the schemas given is of an event type of {model.name}: {', '.join(model.event_types)}."
        )
    return writers


def _exclusive(state_dir: Path) -> TextIO:
    """Lock the state directory for this process: two drivers on one checkpoint must never write together."""
    state_dir.mkdir(parents=True, exist_ok=True)
    lock = (state_dir / "driver.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise SettingsError(
            f"Another stream driver runs on {state_dir}: stop it, or give another --state-dir."
        ) from error
    return lock


if __name__ == "__main__":
    sys.exit(main())
