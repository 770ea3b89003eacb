"""A rebuild run by Airflow, from trigger to promotion: duration and share of each stage, events/s, peak memory."""

import argparse
import re
import threading
import time
from collections import defaultdict
from typing import Self

import psutil

from benchmarks.support.deposits import BALANCE, Deposits, folded
from benchmarks.support.report import print_environment
from include.airflow.client import AirflowApi, airflow_api
from include.airflow.dag_run import DagRun, TaskChanged, TaskFailure
from include.airflow.names import REBUILD_DAG
from include.kafka.topics import changelog_topic
from include.settings import Settings
from include.status.measurement import read_stream_status
from stack.launchers.direct_submit import run
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

CUSTOMERS = 100_000
START_TIMEOUT_S = 600.0
POLL_S = 1.0
# Part of a process's command line -> name in the report.
KINDS = {
    "spark_jobs/stream.py": "stream driver",
    "spark_jobs/catch_up.py": "catch-up",
    # Runs staging, verification and the promotion of the lake.
    "spark_jobs/job_server.py": "job server",
    # Of a check: the program with DuckDB, and the job of a home without a job server.
    "include.replay.quality_check": "check with DuckDB",
    "include.replay.compare_versions": "comparison with DuckDB",
    "spark_jobs/quality_check.py": "check with Spark",
    "query_api.materializer": "materializers",
    "query_api.server": "HTTP servers",
    "kafka.Kafka": "Kafka",
}
RATE = re.compile(r"progress: (catch up|staging) of .*100 %\), ([\d,]+)/s")


def main() -> None:
    """Fold the events into version 1, then rebuild them into version 2."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=2_000_000, help="events in the log (2,000,000)")
    arguments.add_argument("--customers", type=int, default=CUSTOMERS, help="keys (100,000)")
    arguments.add_argument(
        "--timeout", type=float, default=3600, help="timeout of each step in seconds (3600)"
    )
    arguments.add_argument(
        "--cold",
        action="store_true",
        help="without a job server, which the first compaction of a stack starts",
    )
    given = arguments.parse_args()
    # No scheduled compactions: they would compete with some of the stages.
    with temporary_stack(compaction_interval_s=0) as settings:
        print_environment(settings)
        wait_for_stream(settings)
        deposits = Deposits(settings, given.customers)
        deposits.append_many(settings, given.events, seed=1)
        wait_until_folded(settings, deposits, given.timeout)
        if not given.cold:
            assert run(settings, "compaction", ["--read-model", BALANCE.name]) == 0, "not compacted"
        print(f"job server {'started by the rebuild' if given.cold else 'started before, by a compaction'}")
        rebuild(settings, deposits, given.timeout)


def wait_for_stream(settings: Settings) -> None:
    """Wait until Airflow has launched the driver and it is in real-time mode."""
    wait_until(
        lambda: read_stream_status(settings).state == "running",
        "the driver runs",
        START_TIMEOUT_S,
        poll_s=POLL_S,
    )


def wait_until_folded(settings: Settings, deposits: Deposits, timeout_s: float) -> None:
    """Wait until version 1 is folded, and verify that it is exact."""
    wait_until(
        lambda: read_stream_status(settings).events_behind == 0,
        "version 1 is folded",
        timeout_s,
        poll_s=POLL_S * 5,
    )
    assert folded(settings)[0] == deposits.expected(), "version 1 is not exact"


def rebuild(settings: Settings, deposits: Deposits, timeout_s: float) -> None:
    """Trigger a rebuild with automatic promotion, wait for it, and print its durations and memory."""
    api = airflow_api(settings.home, settings.airflow)
    began_s = time.monotonic()
    conf = {"read_model": BALANCE.name, "reason": "benchmark", "approve": False, "grace_hours": 1}
    dag_run = DagRun.trigger(settings, REBUILD_DAG, conf)
    seconds: dict[str, float] = {}
    with PeakMemory(settings) as memory:
        for event in dag_run.follow(["promote_lake"], timeout_s=timeout_s):
            if isinstance(event, TaskChanged) and event.task.state == "success":
                seconds[event.task.task_id] = time.monotonic() - began_s
            assert not isinstance(event, TaskFailure), event
        total_s = time.monotonic() - began_s
    found, _ = folded(settings, changelog_topic(BALANCE.name, 2))
    assert found == deposits.expected(), "version 2 is not exact"
    events = deposits.appended.total()
    print(
        f"rebuild   {events:,} events, {len(found):,} keys: promoted after {seconds['promote']:.0f} s, "
        f"lake after {total_s:.0f} s, exact"
    )
    for task in api.tasks(REBUILD_DAG, dag_run.run_id):
        if task.duration_s and task.state == "success":
            share = task.duration_s / total_s
            rate = _rate(api, dag_run.run_id, task.task_id, task.try_number)
            print(f"  {task.task_id:<20}{task.duration_s:7.1f} s  {share:4.0%}  {rate}")
    for kind, mb in sorted(memory.peak_mb.items(), key=lambda pair: -pair[1]):
        print(f"  memory    {kind:<24}{mb:7,.0f} MB at most")


def _rate(api: AirflowApi, run_id: str, task_id: str, try_number: int) -> str:
    log = "\n".join(api.task_log(REBUILD_DAG, run_id, task_id, try_number))
    rates = RATE.findall(log)
    return f"{rates[-1][1]} events/s, session start excluded" if rates else ""


class PeakMemory:
    """Samples the resident memory of a home's processes during a block: kind -> peak of their sum."""

    def __init__(self, settings: Settings) -> None:
        self.peak_mb: dict[str, float] = defaultdict(float)
        self._home = settings.home
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Start sampling."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(POLL_S):
            now: dict[str, float] = defaultdict(float)
            for process in psutil.process_iter():
                try:
                    if process.environ().get("FOLDLAKE_HOME") != str(self._home):
                        continue
                    command = " ".join(process.cmdline())
                    kind = next((name for word, name in KINDS.items() if word in command), None)
                    if kind is not None:
                        now[kind] += process.memory_info().rss / 2**20
                except (psutil.Error, OSError):
                    continue
            for kind, mb in now.items():
                self.peak_mb[kind] = max(self.peak_mb[kind], mb)


if __name__ == "__main__":
    main()
