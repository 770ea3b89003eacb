"""The command line of a standalone stream driver, and the settings that follow from it, for its launcher and the driver itself."""

import argparse
from dataclasses import replace
from pathlib import Path

from include.errors import SettingsError
from include.kafka.topics import admin_client, partition_count
from include.settings import KafkaConnection, Settings

DESCRIPTION = """Run the stream driver alone, against any Kafka brokers: one read model, no Airflow, version registry or schema registry.

Use it to compare with other engines or to try out a fold; it runs the same query as the full stack. It stops on SIGTERM or Ctrl-C.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = argparse.ArgumentParser(prog="foldlake stream", description=DESCRIPTION)
    p.add_argument("--bootstrap", required=True, help="Kafka's bootstrap servers, host:port[,host:port]")
    p.add_argument("--source-topic", required=True, help="topic of the events; it must exist")
    p.add_argument("--changelog-topic", required=True, help="topic for the state records; created if missing")
    p.add_argument(
        "--state-dir",
        required=True,
        type=Path,
        help="directory of the checkpoint; an existing checkpoint is resumed",
    )
    p.add_argument(
        "--schema",
        action="append",
        required=True,
        metavar="ID=FILE",
        help="schema id in the records' wire format, and the Avro schema file of that event type; repeatable",
    )
    p.add_argument(
        "--state-schema-id",
        type=int,
        default=0,
        help="schema id to write with the state records (default: 0)",
    )
    p.add_argument(
        "--read-model", default="", help="the read model to fold (default: the first one declared)"
    )
    p.add_argument("--master", default="", help="Spark master (default: local, with a slot for each task)")
    return p


def brokers(arguments: argparse.Namespace) -> KafkaConnection:
    """Return how the driver connects to the brokers: with the security of the settings."""
    secrets_file = arguments.state_dir.absolute() / "kafka.properties"
    return replace(Settings().kafka_connection, servers=arguments.bootstrap, secrets_file=secrets_file)


def standalone_settings(arguments: argparse.Namespace) -> Settings:
    """Return the settings of the driver; raises SettingsError when the source topic does not exist."""
    partitions = partition_count(admin_client(brokers(arguments)), arguments.source_topic)
    if partitions is None:
        raise SettingsError(
            f"Topic {arguments.source_topic!r} does not exist at {arguments.bootstrap}: create it, or correct --source-topic."
        )
    return Settings().changed(partitions=partitions, stream_spare_queries=0, stream_master=arguments.master)
