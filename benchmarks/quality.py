"""Duration and peak memory of a quality check of lake and query nodes, how both grow with the log, and the cost of incremental checks."""

import argparse
import json
import resource
import time

import psutil

from benchmarks.rebuild import PeakMemory
from benchmarks.support.deposits import BALANCE, Deposits
from benchmarks.support.report import print_environment
from include.declarations.topic_tables import load_lake_catalog
from include.quality.check import CheckRequest, Mode, StoreName
from include.quality.report import summary_path
from include.replay.table_proof import compare_with_log
from include.settings import CheckEngine, Settings
from include.status.measurement import read_stream_status
from stack.launchers.direct_submit import run, run_check
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import log_path, stream_driver
from tests.support.waiting import wait_until

POLL_S = 1.0
# The kinds of processes that check, by engine. An idle job server, which has filled the lake, is none of a check with DuckDB.
OF_CHECKS = {
    CheckEngine.DUCKDB.value: ("check with DuckDB",),
    CheckEngine.SPARK.value: ("check with Spark", "job server"),
}
STORES = (StoreName.LAKE, StoreName.NODES)


def main() -> None:
    """Check a log of the given size, and a larger one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000, help="events in the log (2,000,000)")
    parser.add_argument("--keys", type=int, default=100_000, help="customers (100,000)")
    parser.add_argument(
        "--times",
        type=int,
        default=10,
        help="size factor of the larger log; 1: skip it; 0: only incremental checks (10)",
    )
    parser.add_argument(
        "--increments",
        type=int,
        default=4,
        help="incremental checks of 1 %% of the keys in the job server (4)",
    )
    parser.add_argument(
        "--engine", choices=[*CheckEngine], default=CheckEngine.AUTO, help="FOLDLAKE_CHECK_ENGINE (auto)"
    )
    parser.add_argument("--timeout", type=float, default=3600, help="timeout of each part in seconds (3600)")
    given = parser.parse_args()
    for factor in sorted({1, given.times}) if given.times else ():
        with temporary_stack(("kafka", "registry", "query_nodes"), check_engine=given.engine) as settings:
            if factor == 1:
                print_environment(settings)
            deposits = Deposits(settings, given.keys * factor)
            deposits.append_many(settings, given.events * factor, seed=factor)
            with stream_driver(settings):
                wait_until_folded(settings, given.timeout)
                assert run(settings, "promote_lake", ["--read-model", BALANCE.name]) == 0, "no lake table"
                prove_event_table(settings)
                for mode, from_log in ((Mode.FULL, True), (Mode.FULL, False), (Mode.SAMPLE, False)):
                    measure(settings, mode, given.events * factor, from_log=from_log)
    measure_increments(given)


def wait_until_folded(settings: Settings, timeout_s: float) -> None:
    """Wait until the driver has folded all events and is in real-time mode."""
    log = log_path(settings)
    wait_until(
        lambda: log.exists() and ": real time" in log.read_text(encoding="utf-8"),
        "the driver has caught up",
        timeout_s,
        poll_s=POLL_S,
    )
    wait_until(
        lambda: not read_stream_status(settings).events_behind,
        "all events are folded",
        timeout_s,
        poll_s=POLL_S,
    )


def measure_increments(given: argparse.Namespace) -> None:
    """Check all keys, then again and again 1 % of them after new events, in one job server; print time and processor time."""
    if not given.increments:
        return
    keys = given.keys
    servers = ("kafka", "registry", "query_nodes")
    stack = temporary_stack(servers, lake_keep_session_s=600.0, check_engine=given.engine)
    with stack as settings:
        deposits = Deposits(settings, keys)
        deposits.append_many(settings, given.events, seed=1)
        with stream_driver(settings):
            wait_until_folded(settings, given.timeout)
            assert run(settings, "promote_lake", ["--read-model", BALANCE.name]) == 0, "no lake table"
            for number in range(given.increments + 1):
                name = f"increment-{number}"
                request = CheckRequest(BALANCE.name, STORES, Mode.INCREMENTAL, name)
                began_s, used_s = time.monotonic(), processor_s(settings)
                status = run_check(settings, request)
                seconds = time.monotonic() - began_s
                used = {kind: s - used_s[kind] for kind, s in processor_s(settings).items()}
                result = json.loads(summary_path(settings.home, name).read_text(encoding="utf-8"))
                assert status == 0, result["verdict"]
                changed = keys // 100 if number else len(deposits.appended)
                # Both nodes' records; the lake's also of earlier changes, if the stream has not committed their offsets yet.
                of_lake = result["records"] - 2 * changed
                assert of_lake >= changed, f"{result['records']} records"
                assert of_lake % changed == 0, f"{result['records']} records"
                verified = result["verified"]["nodes"]
                assert sum(verified["keys"].values()) == len(deposits.appended), (
                    "keys were not counted exactly"
                )
                assert sum(verified["verified_up_to"].values()) == sum(deposits.appended.values())
                assert result["request"]["mode"] == ("incremental" if number else "full"), result[
                    "full_check_reason"
                ]
                print(
                    f"quality   {result['engine']:<7}{result['request']['mode']:<12}{changed:>9,} of {keys:,} keys changed, {result['records']:>9,} records compared: "
                    f"{seconds:6.1f} s; {used['check']:6.1f} CPU s in the job, {used['servers']:5.1f} in all other processes",
                    flush=True,
                )
                deposits.append_each(settings, range(number, keys, 100))
                wait_until_folded(settings, given.timeout)
                assert run(settings, "compaction", ["--read-model", BALANCE.name]) == 0, "not compacted"


def processor_s(settings: Settings) -> dict[str, float]:
    """Return the processor time of the home's processes up to now: of the job server, with its launchers, and of all others."""
    launchers = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = {"check": launchers.ru_utime + launchers.ru_stime, "servers": 0.0}
    for process in psutil.process_iter():
        try:
            if process.environ().get("FOLDLAKE_HOME") == str(settings.home):
                times = process.cpu_times()
                kind = "check" if "job_server" in " ".join(process.cmdline()) else "servers"
                used[kind] += times.user + times.system
        except (psutil.Error, OSError):
            continue
    return used


def prove_event_table(settings: Settings) -> None:
    """Append all events to the topic's event table, and prove it against the log; print how long the proof takes, and that of nothing new."""
    (table,) = load_lake_catalog(settings).of_topics.values()
    assert run(settings, "event_tables", ["--event-table", table.name]) == 0, "not appended"
    for text in ("first proof", "next proof"):
        began_s = time.monotonic()
        found = compare_with_log(settings, table)
        assert found.is_exact, found
        print(f"lake/{table.name}: {text} {time.monotonic() - began_s:.1f} s: {found}", flush=True)


def measure(settings: Settings, mode: Mode, events: int, *, from_log: bool) -> None:
    """Run a check, and print its duration and peak memory."""
    name = f"benchmark-{mode}-{from_log}"
    request = CheckRequest(BALANCE.name, STORES, mode, name, from_log=from_log)
    began_s = time.monotonic()
    with PeakMemory(settings) as memory:
        status = run_check(settings, request)
    seconds = time.monotonic() - began_s
    result = json.loads(summary_path(settings.home, name).read_text(encoding="utf-8"))
    assert status == 0, result["verdict"]
    peak_mb = max(memory.peak_mb[kind] for kind in OF_CHECKS[result["engine"]])
    print(f"          {result['event_sources']}")
    print(
        f"quality   {result['engine']:<7}{mode:<7}{events:>11,} events, {result['keys']:>9,} records of lake and nodes: {seconds:6.1f} s, of "
        f"which {result['duration_s']:6.1f} s checking; {peak_mb:,.0f} MB at most"
    )


if __name__ == "__main__":
    main()
