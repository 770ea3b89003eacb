"""A stream driver with one fold, without Spark, whose lock is the real one: `python -m tests.support.faults.dummy_driver [--standby] [--handover]`.

It writes to the file `writes` of its home when it begins and when it ends as it should. The setting `stream_driver_host` says what it does.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

import psutil

from include.process import die_with_parent, launcher_pid
from include.settings import Settings
from include.stream import query_transfer
from include.stream.driver_launch import READY
from stack.launchers import stream_driver

FAILS, IS_NEVER_READY, FAILS_WHEN_IT_WRITES = "fails", "is-never-ready", "fails-when-it-writes"
PASSES_NOTHING = "passes-nothing"
FOLD = "the fold"
POLL_INTERVAL_S = 0.01
# How long a driver goes on when its fold has been taken.
OTHER_QUERIES_S = 0.2


def main() -> None:
    """Behave like a driver, or like its standby."""
    parent_pid = launcher_pid()
    die_with_parent(parent_pid)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = Settings.of()
    home, behaviour = settings.home, settings.stream.driver_host
    own = stream_driver.Driver(os.getpid(), parent_pid, stream_driver.started_s(psutil.Process()), "local")
    if "--standby" in sys.argv:
        turn = home / f"turn-{os.getpid()}"
        stream_driver.await_turn(home, own, turn)
        if behaviour == FAILS:
            sys.exit("ValueError: a wrong setting")
        while behaviour == IS_NEVER_READY:
            time.sleep(POLL_INTERVAL_S)
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        while not turn.exists() and not _is_passed_to(home, own.pid):
            time.sleep(POLL_INTERVAL_S)
    else:
        stream_driver.acquire(home, wait_s=30.0)
        stream_driver.announce(home, own)
        if behaviour == FAILS:
            sys.exit("ValueError: a wrong setting")
    while True:
        _write_until_passed(home, behaviour, own.pid)
        _wait_until_taken_back(home, own.pid)


def _write_until_passed(home: Path, behaviour: str, pid: int) -> None:
    """Run the fold until it is to be passed to another driver."""
    with (home / "writer").open("a") as writer:
        # Fails if another driver writes.
        fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        note(home, f"{behaviour} begins")
        try:
            if behaviour == FAILS_WHEN_IT_WRITES:
                sys.exit("ValueError: a wrong fold")
            while behaviour == PASSES_NOTHING or not _is_passing(home, pid):
                time.sleep(POLL_INTERVAL_S)
        finally:
            note(home, f"{behaviour} ends")
    transfer = query_transfer.read(home)
    if transfer is not None:
        query_transfer.list_passed(home, transfer, [FOLD])


def _wait_until_taken_back(home: Path, pid: int) -> None:
    """Wait until the fold is to run here again; exit if another driver has taken it."""
    while _is_passing(home, pid):
        if writes(home)[-1].endswith(" begins"):
            time.sleep(OTHER_QUERIES_S)
            sys.exit(query_transfer.HANDED_OVER)
        time.sleep(POLL_INTERVAL_S)


def _is_passing(home: Path, pid: int) -> bool:
    transfer = query_transfer.read(home)
    return transfer is not None and transfer.from_pid == pid


def _is_passed_to(home: Path, pid: int) -> bool:
    transfer = query_transfer.read(home)
    return transfer is not None and transfer.to_pid == pid and FOLD in query_transfer.passed(home, transfer)


def note(home: Path, line: str) -> None:
    """Append a line to what the drivers of this home have done."""
    with (home / "writes").open("a") as writes:
        writes.write(f"{line}\n")


def writes(home: Path) -> list[str]:
    """Return what the drivers of this home have done, in order."""
    path = home / "writes"
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    main()
