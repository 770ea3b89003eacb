"""What users notice of `./foldlake up` at 1,000 events/s: how long nothing is folded, which lookups fail, how long no command is accepted.

A deploy adds a read model, changes it, or changes a setting, in a whole stack with a standby driver.
"""

import argparse
import threading
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.deploys.clients import COMMANDED, clients
from benchmarks.latency import Load, wait_for_real_time
from benchmarks.outages import Pulse, standbys
from benchmarks.support.deposits import folded
from benchmarks.support.report import print_environment
from include.settings import Settings
from stack.lifecycle import start
from tests.support.balance_copy import with_balance_copy
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

EVENTS_PER_S = 1_000
TIMEOUT_S = 600.0
# The JVM's compiler, and that of the standby.
WARM_UP_S = 75
SETTLE_S = 10.0
FURTHER = "further"


def main() -> None:
    """Deploy under load, print what users notice of each deploy, and check all balances."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--times", type=int, default=3, help="deploys of each kind (3)")
    arguments.add_argument(
        "--lookups", type=int, default=800, help="lookups per second of all four clients (800)"
    )
    arguments.add_argument("--systems", nargs="*", default=(), help="systems that are declared as well")
    options = arguments.parse_args()
    with TemporaryDirectory() as folder:
        stack = temporary_stack(
            compaction_interval_s=0,
            stream_standby="on",
            read_models_dir=Path(folder),
            systems=tuple(options.systems),
        )
        with stack as settings:
            print_environment(settings)
            wait_for_real_time(settings)
            load = Load(settings, EVENTS_PER_S)
            pulse = Pulse(settings)
            failed: list[BaseException] = []

            def deploys() -> None:
                try:
                    deploy_all(settings, Path(folder), pulse, options.times, options.lookups)
                except BaseException as error:  # noqa: BLE001 - raised below, in the main thread
                    failed.append(error)

            worker = threading.Thread(target=deploys)
            worker.start()
            while worker.is_alive():
                load.run(5)
            worker.join()
            if failed:
                raise failed[0]
            expected = load.deposits.expected()
            wait_until(
                lambda: of_events(settings) == expected, "the balances are exact", TIMEOUT_S, poll_s=2.0
            )
            pulse.stop()
            print(f"exact     {sum(count for count, _ in expected.values()):,} events")


def of_events(settings: Settings) -> dict[str, object]:
    """Return what is folded of customers without commands."""
    return {key: found for key, found in folded(settings)[0].items() if not key.startswith(COMMANDED)}


def deploy_all(settings: Settings, folder: Path, pulse: Pulse, times: int, lookups_per_s: int) -> None:
    """Deploy each kind of change several times."""
    time.sleep(WARM_UP_S)
    wait_until(lambda: standbys(settings) > 0, "a standby driver is ready", TIMEOUT_S)
    for number in range(times):
        changed = settings.changed(node_max_age_s=61.0 + number, stream_min_batch_time_s=61.0 + number)
        deploy(settings, "nothing changed", pulse, lookups_per_s)
        with_balance_copy(settings, f"{FURTHER}-{number}", folder)
        deploy(settings, "a further read model", pulse, lookups_per_s)
        deploy(changed, "a changed setting", pulse, lookups_per_s)
        settings = changed


def deploy(settings: Settings, name: str, pulse: Pulse, lookups_per_s: int) -> None:
    """Run `up` under load, and print what its users have noticed."""
    wait_until(pulse.is_moving, "the fold moves", TIMEOUT_S)
    with clients(settings, lookups_per_s) as answers:
        time.sleep(SETTLE_S)
        began_s = time.time()
        start(settings)
        took_s = time.time() - began_s
        time.sleep(SETTLE_S)
        gap_s = pulse.longest_gap_s(began_s)
    commands = answers.pop("commands")
    away_s = max(later - earlier for earlier, later in pairwise(commands.accepted_s))
    print(
        f"deploys   {name:<22}`up` {took_s:6.1f} s; no fold for {gap_s:5.2f} s; no accepted command for {away_s:5.2f} s",
        flush=True,
    )
    for client, one in {"commands": commands, **answers}.items():
        reasons = "".join(f"; {one.failures.count(reason)}: {reason}" for reason in sorted(set(one.failures)))
        print(
            f"          {client:<26}{len(one.failures):>6,} of {one.answered + len(one.failures):>7,} failed, "
            f"slowest {one.slowest_s * 1000:6.0f} ms{reasons}",
            flush=True,
        )


if __name__ == "__main__":
    main()
