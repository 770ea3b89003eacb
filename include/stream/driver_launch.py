"""Files by which processes agree on the stream driver: which one is wanted, what became of it, and when a standby driver takes over.

The task writes the request, the stream supervisor (stack/launchers/stream_supervisor.py) the report. Both outlive a restart of either
side: the stream supervisor goes on without Airflow, and Airflow finds the driver again.
"""

import json
import logging
import os
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from include.files import file_lock, write_atomically
from include.unknown_fields import read_record

# The lock is held for the time of a few small reads and writes.
LOCK_WAIT_S = 5.0
LOG = logging.getLogger(__name__)
# Variable with the path of the file that appears when the standby driver has the lock. Unset: the driver has the lock already.
TURN_FILE = "STREAM_TURN_FILE"
# Variable that is set for a standby driver with another configuration than the driver: it ends if it could not replace the driver.
HANDOVER = "STREAM_HANDOVER"
# Variable that is set for a driver whose JVM writes an ahead-of-time cache when it exits.
WRITES_CACHE = "STREAM_WRITES_CACHE"
POLL_INTERVAL_S = 0.02
# What a standby driver writes to the log when it is ready.
READY = "standby: ready"


@dataclass(frozen=True)
class LaunchRequest:
    """The driver that is wanted.

    launch_id: identifies the launch, including those by which the stream supervisor brings a driver back that ended too soon.
    follower: identifies the task that follows this launch, and may end it.
    is_wanted: False: the stream supervisor is to stop the driver.
    """

    launch_id: str
    follower: str
    is_wanted: bool = True


@dataclass(frozen=True)
class LaunchReport:
    """What has become of a launch.

    supervisor_pid: the process of the stream supervisor that wrote this.
    launched_at: ISO time, in UTC, of the last launch.
    relaunches: how often the stream supervisor has brought the driver back.
    has_ended: whether the stream supervisor leaves it to the next request to launch a driver.
    error: the reason in one line; empty if the driver was stopped.
    output: the last lines of the driver's output.
    standby_pid: the process of a second driver, which gets ready, and takes over when the driver is killed; 0: none.
    """

    launch_id: str
    supervisor_pid: int
    launched_at: str
    relaunches: int = 0
    has_ended: bool = False
    error: str = ""
    output: str = ""
    standby_pid: int = 0


def follow(home: Path, follower: str) -> str:
    """Want a driver, and return the id of the launch: the one under way, or a new one if there is none.

    May be repeated: a follower gets one launch, also after that has ended.
    """
    with _lock(home):
        request, report = read_request(home), read_report(home)
        if request is not None and request.follower == follower:
            return request.launch_id
        if request is not None and request.is_wanted and not _has_ended(report, request.launch_id):
            _write_request(home, replace(request, follower=follower))
            return request.launch_id
        launch_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
        _write_request(home, LaunchRequest(launch_id, follower))
        return launch_id


def withdraw(home: Path, follower: str | None = None) -> None:
    """Want no driver any more, unless another task than `follower` follows a running one. None: whoever follows it."""
    with _lock(home):
        request = read_request(home)
        if request is not None and (
            follower in (None, request.follower) or _has_ended(read_report(home), request.launch_id)
        ):
            _write_request(home, replace(request, is_wanted=False))


def is_following(home: Path, follower: str) -> bool:
    """Whether this task is the one that follows the driver."""
    request = read_request(home)
    return request is not None and request.follower == follower


def is_under_way(home: Path) -> bool:
    """Whether a launch was requested that has not ended, wanted or not."""
    request = read_request(home)
    return request is not None and not _has_ended(read_report(home), request.launch_id)


def ended_report(home: Path, launch_id: str) -> LaunchReport | None:
    """Return the report of a launch that has ended; None while it is under way."""
    report = read_report(home)
    return report if _has_ended(report, launch_id) else None


def read_request(home: Path) -> LaunchRequest | None:
    """Return the request; None before the first one."""
    return read_record(LaunchRequest, _request_path(home))


def read_report(home: Path) -> LaunchReport | None:
    """Return the report of the newest launch; None before the first one."""
    return read_record(LaunchReport, _report_path(home))


def write_report(home: Path, report: LaunchReport) -> None:
    """Store the report. Only the stream supervisor may call this."""
    write_atomically(_report_path(home), json.dumps(asdict(report), indent=1))


def _lock(home: Path) -> AbstractContextManager[None]:
    return file_lock(_request_path(home).with_suffix(".lock"), wait_s=LOCK_WAIT_S)


def _has_ended(report: LaunchReport | None, launch_id: str) -> bool:
    return report is not None and report.launch_id == launch_id and report.has_ended


def _write_request(home: Path, request: LaunchRequest) -> None:
    write_atomically(_request_path(home), json.dumps(asdict(request), indent=1))


def _request_path(home: Path) -> Path:
    return home / "stream" / "wanted.json"


def _report_path(home: Path) -> Path:
    return home / "stream" / "launch.json"


def is_standby() -> bool:
    """Whether this driver waits for its turn."""
    return _turn_file() is not None


def is_for_handover() -> bool:
    """Whether this standby driver has another configuration than the driver, and is to replace it."""
    return bool(os.environ.get(HANDOVER))


def writes_cache() -> bool:
    """Whether this driver's JVM has to exit as usual, because it writes an ahead-of-time cache then."""
    return bool(os.environ.get(WRITES_CACHE))


def wait_for_turn(meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until this driver has the lock, calling `meanwhile` again and again; returns at once unless it is a standby."""
    turn = _turn_file()
    if turn is None:
        return
    LOG.info("%s, waiting until the stream driver ends", READY)
    while not turn.exists():
        meanwhile()
        time.sleep(POLL_INTERVAL_S)
    os.environ.pop(TURN_FILE, None)
    LOG.info("standby: taking over")


def _turn_file() -> Path | None:
    path = os.environ.get(TURN_FILE)
    return Path(path) if path else None
