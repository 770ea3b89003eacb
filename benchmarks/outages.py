"""How long the fold stands still at 1,000 events/s when the driver, its supervisor, or a part of Airflow is killed, or Airflow is stopped.

The figure of an outage is the longest time without a new record on the changelog, from the outage until everything runs again.
"""

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import psutil
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from benchmarks.latency import Load, wait_for_real_time
from benchmarks.support.deposits import BALANCE, CHANGELOG, folded
from benchmarks.support.report import print_environment
from include.airflow.client import AirflowApi
from include.settings import Settings
from include.stream.driver_launch import READY
from stack.components import airflow as airflow_stack
from stack.components.stream import STREAM_SUPERVISOR
from stack.launchers import stream_driver
from stack.supervision.supervisor import Supervisor
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

EVENTS_PER_S = 1_000
# After an outage, and when another standby driver is ready, before the next one.
SETTLE_S = 10.0
TIMEOUT_S = 300.0
HEALTHY = {"metadatabase", "scheduler", "triggerer", "dag_processor"}
# The changelog's end is as recent as this before the first outage, and after the last one.
MOVING_S = 0.5


class Pulse:
    """The times at which records appear on the changelog, observed in a thread."""

    def __init__(self, settings: Settings) -> None:
        """Begin to observe."""
        self._settings = settings
        self._at_s: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._observe)
        self._thread.start()

    def longest_gap_s(self, since_s: float) -> float:
        """Return the longest time without a record since then (seconds of the Unix clock)."""
        times = [since_s, *(at_s for at_s in list(self._at_s) if at_s > since_s), time.time()]
        return max(after - before for before, after in pairwise(times))

    def is_moving(self) -> bool:
        """Whether a record has appeared just now."""
        return bool(self._at_s) and time.time() - self._at_s[-1] < MOVING_S

    def stop(self) -> None:
        """End the observation."""
        self._done.set()
        self._thread.join()

    def _observe(self) -> None:
        consumer = Consumer(
            {
                **self._settings.kafka_connection.client_settings,
                "group.id": "pulse",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
            }
        )
        partitions = range(BALANCE.partitions(self._settings.topics))
        consumer.assign([TopicPartition(CHANGELOG, partition, OFFSET_END) for partition in partitions])
        while not self._done.is_set():
            if consumer.consume(10_000, 0.02):
                self._at_s.append(time.time())
        consumer.close()


@dataclass(frozen=True)
class Outage:
    """An outage: what it is, how to cause it, and whether it is over.

    ends_standby: whether the driver's end takes its standby away, so that the next outage must wait until another one is ready.
    """

    name: str
    begin: Callable[[], None]
    is_over: Callable[[], bool]
    ends_standby: bool = False


def main() -> None:
    """Cause each outage several times under load, print the longest standstill of each, and check all balances."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=5, help="kills of each process (5)")
    arguments.add_argument("--airflow-stop-s", type=int, default=60, help="how long Airflow is stopped (60)")
    arguments.add_argument("--only", default="", help="outages whose name contains this")
    arguments.add_argument("--standby", choices=("on", "off"), default="on", help="a standby driver (on)")
    options = arguments.parse_args()
    with temporary_stack(
        ("kafka", "registry", "airflow", "stream"), compaction_interval_s=0, stream_standby=options.standby
    ) as settings:
        print_environment(settings)
        wait_for_real_time(settings)
        load = Load(settings, EVENTS_PER_S)
        pulse = Pulse(settings)
        under_load = threading.Event()

        def cause(outage: Outage) -> float:
            before = standbys(settings)
            gap_s = standstill_s(outage, pulse)
            print(f"  {outage.name}: {gap_s:.1f} s", flush=True)
            if outage.ends_standby and options.standby == "on":
                wait_until(lambda: standbys(settings) > before, "another standby is ready", TIMEOUT_S)
            time.sleep(SETTLE_S)
            return gap_s

        def outages(_done: threading.Event) -> None:
            time.sleep(75)  # the JVM's compiler, and that of the standby
            for outage in (found for found in all_outages(settings) if options.only in found.name):
                gaps_s = [cause(outage) for _ in range(options.kills)]
                report(outage.name, gaps_s)
            if not options.only:
                report(
                    f"Airflow stopped for {options.airflow_stop_s} s",
                    [stop_s(settings, pulse, options.airflow_stop_s)],
                )
            under_load.set()

        worker = threading.Thread(target=outages, args=(under_load,))
        worker.start()
        while worker.is_alive():
            load.run(5)
        worker.join()
        assert under_load.is_set(), "an outage did not end: see the error above"
        expected = load.deposits.expected()
        wait_until(lambda: folded(settings)[0] == expected, "the balances are exact", TIMEOUT_S, poll_s=2.0)
        pulse.stop()
        print(f"exact     {sum(count for count, _ in expected.values()):,} events")


def all_outages(settings: Settings) -> list[Outage]:
    """Return the kills of each process, and that of all of Airflow's."""
    names = [process.name for process in airflow_stack.processes(settings)]
    health = AirflowApi(settings.airflow.base_url).health

    def is_airflow_up() -> bool:
        return health() >= HEALTHY

    def kill_airflow(victims: list[str]) -> Callable[[], None]:
        return lambda: kill(settings, victims)

    def is_driver_back() -> bool:
        return stream_driver.running(settings.home) is not None

    return [
        *(Outage(f"kill -9 of {name}", kill_airflow([name]), is_airflow_up) for name in names),
        Outage("kill -9 of all of Airflow", kill_airflow(names), is_airflow_up),
        Outage(
            "kill -9 of the driver's JVM", lambda: kill_driver(settings), is_driver_back, ends_standby=True
        ),
        Outage(
            "kill -9 of the stream supervisor",
            kill_airflow([STREAM_SUPERVISOR]),
            is_driver_back,
            ends_standby=True,
        ),
    ]


def kill(settings: Settings, names: list[str]) -> None:
    """Kill these processes of the stack."""
    states = Supervisor(settings).states()
    for pid in [states[name].pid for name in names]:
        assert pid is not None
        psutil.Process(pid).kill()


def kill_driver(settings: Settings) -> None:
    """Kill the driver."""
    driver = stream_driver.running(settings.home)
    assert driver is not None
    driver.kill()


def standbys(settings: Settings) -> int:
    """Return how many standby drivers have been ready so far."""
    return (settings.home / "logs" / "stream.log").read_text(encoding="utf-8").count(READY)


def standstill_s(outage: Outage, pulse: Pulse) -> float:
    """Cause an outage; return the longest time without a record until it is over."""
    wait_until(pulse.is_moving, "the fold moves", TIMEOUT_S)
    began_s = time.time()
    outage.begin()
    time.sleep(1.0)
    wait_until(lambda: outage.is_over() and pulse.is_moving(), f"after {outage.name}", TIMEOUT_S, poll_s=0.2)
    return pulse.longest_gap_s(began_s)


def stop_s(settings: Settings, pulse: Pulse, seconds: int) -> float:
    """Stop all of Airflow for this time, and start it again; return the longest time without a record."""
    supervisor = Supervisor(settings)
    processes = airflow_stack.processes(settings)
    began_s = time.time()
    supervisor.stop(processes)
    time.sleep(seconds)
    for process in processes:
        supervisor.start(process.name)
    wait_until(
        lambda: AirflowApi(settings.airflow.base_url).health() >= HEALTHY, "Airflow runs again", TIMEOUT_S
    )
    return pulse.longest_gap_s(began_s)


def report(name: str, gaps_s: list[float]) -> None:
    """Print one line."""
    print(
        f"{name:<38}longest standstill: median {median(gaps_s):.2f}, max {max(gaps_s):.2f} s ({len(gaps_s)} times)",
        flush=True,
    )


if __name__ == "__main__":
    main()
