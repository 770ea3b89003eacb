"""Stacks and homes that exist for the duration of a block, on free ports, for integration tests."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.settings import Settings
from stack.lifecycle import start
from stack.stack_guard import guarded
from stack.supervision import process
from tests.support.waiting import wait_until

# Settings of a stream driver for a test with few events: it commits soon, and catches up in batches of a few of them. Each commit and batch
# plans its query again, which takes a second of processor time or more where records are JSON: with five queries and a commit every 10 s,
# a driver kept half a core busy.
SHORT_COMMITS = {
    "stream_real_time_interval_s": 20,
    "stream_catch_up_threshold_events": 2_000,
    "stream_catch_up_batch_events": 4_000,
}


def free_ports(count: int) -> list[int]:
    """Return this number of ports on which no process currently listens; never those of another pytest worker."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return process.free_ports(count, process.UNASSIGNED_PORTS[worker::workers])


def first_of_free_ports(count: int) -> int:
    """Return the first of this number of successive ports on which no process currently listens."""
    free = set(process.free_ports(2_000))
    return next(port for port in sorted(free) if {port + number for number in range(count)} <= free)


def temporary_settings(home: Path, **overrides: object) -> Settings:
    """Return settings with free ports and this home, ignoring any `.env` file."""
    kafka, controller, registry, airflow, redis, first_node, second_node = free_ports(7)
    values: dict[str, object] = {
        "home": home,
        "kafka_port": kafka,
        "kafka_controller_port": controller,
        "registry_port": registry,
        "airflow_port": airflow,
        "redis_port": redis,
        "query_ports": (first_node, second_node),
        # A second JVM for each stack would take processor time from the tests.
        "stream_standby": "off",
        # Also where the environment has the settings of a secured stack: tests and benchmarks name the security that they need.
        "auth": "none",
        "tls_cert_file": None,
        "tls_key_file": None,
        # With a lower priority, jobs that a test waits for would get almost no processor time beside another worker's tests.
        "lake_niceness": 0,
        # Tests wait for the jobs of schedules.
        "airflow_start_delay_s": 0.0,
        **overrides,
    }
    return Settings.of(**values)


@contextmanager
def temporary_stack(
    only: Sequence[str] = (), keep_home: Callable[[], bool] = lambda: False, **overrides: object
) -> Iterator[Settings]:
    """Run a stack in a new directory; it stops when the block or this process ends.

    Args:
        only: components to start now, as for `stack.lifecycle.start`; the others can be started later.
        keep_home: called at the end; returns whether to keep the directory with the logs.
        overrides: settings by variable, for example `kafka_port`.
    """
    with temporary_home(keep_home) as home:
        settings = temporary_settings(home, **overrides)
        with guarded(settings):
            start(settings, only)
            yield settings


@contextmanager
def sharing_servers(
    servers: Settings, keep_home: Callable[[], bool] = lambda: False, **overrides: object
) -> Iterator[Settings]:
    """Yield settings of a new home that uses the Kafka and schema registry of another stack; no other process runs yet.

    All topics are deleted before and after the block, so blocks do not see each other's events.

    Args:
        servers: settings of the stack that runs Kafka and the schema registry.
        keep_home: called at the end; returns whether to keep the home with the logs.
        overrides: settings by variable, for example `quality_wait_s`.
    """
    external = {
        "kafka_bootstrap": servers.kafka.bootstrap_servers,
        "schema_registry_url": servers.registry.url,
    }
    with temporary_home(keep_home) as home:
        settings = temporary_settings(home, **external, **overrides)
        delete_topics(settings)
        with guarded(settings):
            yield settings
        delete_topics(settings)


@contextmanager
def temporary_home(keep: Callable[[], bool]) -> Iterator[Path]:
    """Yield a new directory, which is removed at the end unless the block raises or `keep` returns true."""
    home = Path(tempfile.mkdtemp(prefix="foldlake-"))
    yield home
    # Not reached if the block raises an exception: the logs are then kept.
    if keep():
        logging.getLogger(__name__).warning("Kept the logs in %s", home / "logs")
    else:
        shutil.rmtree(home, ignore_errors=True)


def delete_topics(settings: Settings) -> None:
    """Delete every topic except Kafka's own, and wait until the broker lists none; tolerates a broker restart."""
    admin = AdminClient(settings.kafka_connection.client_settings)

    def are_deleted() -> bool:
        try:
            listed = admin.list_topics(timeout=10).topics
            found = [topic for topic in listed if not topic.startswith("__")]
            for deleted in admin.delete_topics(found, operation_timeout=30).values() if found else ():
                deleted.result()
        except KafkaException:
            return False
        return not found

    wait_until(are_deleted, "all topics are deleted")
