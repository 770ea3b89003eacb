"""Promotion: the delay until the last node serves the new version, and the live version's latency during a rebuild."""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from benchmarks.latency import Load, Probes, wait_for_real_time
from benchmarks.support.deposits import BALANCE, Deposits, folded
from benchmarks.support.lookup_client import NodeConnection
from benchmarks.support.report import latency_line, percentile, print_environment
from include.declarations.load import load_catalog
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import VERSION_REGISTRY_TOPIC, changelog_topic
from include.nodes.peers import HOP_HEADER, HOP_OWNER
from include.rebuild.promotion import promote_versions, roll_back_version
from include.rebuild.request import RebuildRequest
from include.rebuild.stage import Action
from include.rebuild.stages.serve import HAND_OVER, HYDRATE
from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.lake_config import lake_config
from include.spark.stream_config import stream_config, stream_master
from tests.support.lake.registered_version import registered_version
from tests.support.rebuild.stage_runs import stage_run
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

EVENTS_PER_S = 500
SWITCH_TIMEOUT_S = 30.0
POLL_S = 0.005
WARM_UP_S = 60
CHUNK_S = 5
REQUEST = RebuildRequest(
    {BALANCE.name: BALANCE.newest_fold_revision}, "benchmark", approve=False, grace_h=1.0
)


def main() -> None:
    """Measure the live version's latency before and during a rebuild, then the delay of repeated promotions."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=500_000, help="events in the log (500,000)")
    arguments.add_argument("--customers", type=int, default=100_000, help="keys (100,000)")
    arguments.add_argument("--promotions", type=int, default=200, help="promotions back and forth (200)")
    arguments.add_argument(
        "--seconds", type=int, default=45, help="duration of the measurement before the rebuild (45)"
    )
    given = arguments.parse_args()
    with temporary_stack(("kafka", "registry", "query_nodes")) as settings:
        print_environment(settings)
        bulk = Deposits(settings, given.customers, prefix="bulk-")
        bulk.append_many(settings, given.events, seed=1)
        load, probes = Load(settings, EVENTS_PER_S), Probes(settings)
        with stream_driver(settings):
            wait_for_real_time(settings)
            number = registered_version(settings, BALANCE, REQUEST, "benchmark")
            compare_latency(settings, load, probes, number, given.seconds)
            run = stage_run(settings, (BALANCE.name,), {}, run_id="benchmark")
            for stage in (HAND_OVER, HYDRATE):
                assert isinstance(stage.work, Action)
                stage.work.run(run)
            promote_versions(settings, load_catalog(), {BALANCE.name: number}, grace_h=1.0)
            measure_promotions(settings, bulk, number, given.promotions)
        expected = bulk.expected() | load.deposits.expected() | probes.deposits.expected()
        found, _ = folded(settings, changelog_topic(BALANCE.name, number))
        assert found == expected, "the promoted version is not exact"
        print(f"exact     {sum(count for count, _ in found.values()):,} events of {len(found):,} customers")


def compare_latency(settings: Settings, load: Load, probes: Probes, number: int, seconds: int) -> None:
    """Measure acknowledged -> lookup at 500 events/s, before and during catch-up and staging."""
    load.run(WARM_UP_S)

    def measured(name: str, run_s: int, job: subprocess.Popen[bytes] | None = None) -> list[float]:
        probes.latencies_ms.clear()
        load.run(run_s, during=probes.run)
        while job is not None and job.poll() is None:
            load.run(CHUNK_S, during=probes.run)
        every = sorted(ms for latencies in probes.latencies_ms.values() for ms in latencies)
        print(latency_line(f"acknowledged -> lookup, {name}", every), flush=True)
        assert job is None or job.returncode == 0, f"the job failed: see {settings.home / 'logs'}"
        return every

    before = measured("before", seconds)
    # Sequentially, as in the pool `rebuild`.
    stream, lake = stream_config(settings), lake_config(settings.lake)
    job = submit(settings, "catch-up", stream_master(settings), stream, "catch_up", number)
    during = measured("catch-up", CHUNK_S, job)
    job = submit(settings, "lake", settings.lake.master, lake, "build_staging", number)
    during = sorted(during + measured("staging", CHUNK_S, job))
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        ratio = percentile(during, share) / percentile(before, share)
        print(f"live version's latency during a rebuild, {name}: {ratio:.2f} times that before")


def submit(
    settings: Settings, kind: str, master: str, config: dict[str, str], job: str, number: int
) -> subprocess.Popen[bytes]:
    """Start a rebuild's Spark job, as Airflow does."""
    command = [
        str(CHECKOUT / "stack" / "bin" / f"spark-submit-{kind}"),
        *("--master", master),
        *(f"--conf={name}={value}" for name, value in config.items()),
        str(CHECKOUT / "spark_jobs" / f"{job}.py"),
        *("--read-model", BALANCE.name, "--version", str(number)),
    ]
    environment = {**os.environ, **settings_environment(settings), "FOLDLAKE_PYTHON": sys.executable}
    with (settings.home / "logs" / f"{job}.log").open("ab") as log:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)


def measure_promotions(settings: Settings, deposits: Deposits, number: int, times: int) -> None:
    """Promote version 1 and the rebuilt version alternately, and measure when each node switches."""
    keys = [key_owned_by(port, deposits) for port in settings.query_ports]
    first: list[float] = []
    last: list[float] = []
    for turn in range(times):
        version = 1 if turn % 2 == 0 else number
        watch = Switch(settings, keys, version)
        roll_back_version(settings, BALANCE.name, version)
        seen_s = watch.result()
        appended_s = newest_record_s(settings)
        first.append((min(seen_s) - appended_s) * 1000)
        last.append((max(seen_s) - appended_s) * 1000)
    print(latency_line("record -> first node serves it", first))
    print(latency_line("record -> last node serves it", last))


def key_owned_by(port: int, deposits: Deposits) -> str:
    """Return a key that this node owns: a proxied key would show the switch of its owner instead."""
    connection = NodeConnection(port)
    for key in deposits.expected():
        status, _ = look_up(connection, key, {HOP_HEADER: HOP_OWNER})
        if status == HTTPStatus.OK:
            return key
    raise AssertionError(f"the node on port {port} owns no key")


def look_up(
    connection: NodeConnection, key: str, headers: Mapping[str, str] | None = None
) -> tuple[int, int]:
    """Look up a key; returns the status, and the answer's version (0 if it has none)."""
    status, body = connection.get(f"/api/read-models/{BALANCE.name}/records/{key}", headers)
    return status, json.loads(body).get("version", 0)


class Switch:
    """Looks up, on each node, a key that it owns until the node serves a version, and records the Unix times."""

    def __init__(self, settings: Settings, keys: Sequence[str], version: int) -> None:
        self._version = version
        self._seen_s: list[float] = []
        self._threads = [
            threading.Thread(target=self._watch, args=(port, key))
            for port, key in zip(settings.query_ports, keys, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def result(self) -> list[float]:
        """Wait for all nodes, and return their switch times."""
        for thread in self._threads:
            thread.join()
        assert len(self._seen_s) == len(self._threads), "a node did not switch in time"
        return self._seen_s

    def _watch(self, port: int, key: str) -> None:
        connection = NodeConnection(port)

        def is_switched() -> bool:
            status, version = look_up(connection, key)
            assert status == HTTPStatus.OK, f"HTTP {status} for {key}"
            return version == self._version

        wait_until(is_switched, f"port {port} serves v{self._version}", SWITCH_TIMEOUT_S, poll_s=POLL_S)
        self._seen_s.append(time.time())


def newest_record_s(settings: Settings) -> float:
    """Return the Unix time of the registry's newest record in seconds."""
    consumer = log_consumer(settings.kafka_connection)
    try:
        return max(m.timestamp()[1] for m in read_tail(consumer, VERSION_REGISTRY_TOPIC, 0)) / 1000
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
