"""The audit log: one JSON object a line for each command, promotion, rollback, change of a key, and refused request.

All processes of a home append to one file. It is rotated at a size, like the logs of processes. JSON escapes what a client sends, so no
client can write a line of its own.
"""

import fcntl
import getpass
import json
import logging
import os
import threading
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from include.files import PRIVATE_FILE
from include.observability.request_context import request_id

FILE = Path("logs", "audit.log")
MAX_BYTES = 20 * 1024 * 1024
BACKUPS = 3
MAX_TEXT = 300
# Refused requests that one process records per second; the next record says how many were left out.
REFUSED_PER_S = 10

log = logging.getLogger(__name__)


class AuditLog:
    """Appends to the audit log of a home. Thread-safe, and safe with other processes.

    node: the name of the node that records; empty for other programs. A record that cannot be written is logged as an error.
    """

    def __init__(self, home: Path, node: str = "", *, max_bytes: int = MAX_BYTES) -> None:
        self._path = home / FILE
        self._node = node
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._second = 0
        self._refused = 0
        self._left_out = 0

    def record(self, action: str, who: str, **fields: object) -> str:
        """Append a record; return the request id in it: a new one outside a request."""
        request = request_id() or uuid.uuid4().hex
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "action": action,
            "who": who,
            "request": request,
            **({"node": self._node} if self._node else {}),
            **{name: _short(value) for name, value in fields.items() if value is not None},
        }
        try:
            self._append((json.dumps(entry) + "\n").encode())
        except OSError as error:
            log.error("the audit log %s cannot be written: %s", self._path, error)  # noqa: TRY400 - the disk is at fault
        return request

    def refused(self, who: str, **fields: object) -> None:
        """Append a record of a refused request, unless there were too many in this second."""
        with self._lock:
            second = int(time.monotonic())
            if second != self._second:
                self._second, self._refused = second, 0
            self._refused += 1
            if self._refused > REFUSED_PER_S:
                self._left_out += 1
                return
            left_out, self._left_out = self._left_out, 0
        self.record("refused", who, **fields, left_out=left_out or None)

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # The lock is in a file of its own: the log itself is renamed.
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _size(self._path) + len(line) > self._max_bytes:
                self._rotate()
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        finally:
            os.close(lock)

    def _rotate(self) -> None:
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, BACKUPS + 1))]
        for newer, older in reversed(list(pairwise(names))):
            with suppress(FileNotFoundError):
                newer.replace(older)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _short(value: object) -> object:
    return value[:MAX_TEXT] if isinstance(value, str) else value


def operator_name() -> str:
    """Return who runs this program, for the audit log: the user of the operating system, and Airflow's run if it is one of its tasks."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        user = str(os.getuid())
    run = os.environ.get("AIRFLOW_CTX_DAG_RUN_ID")
    return f"user:{user}" + (f" run:{run}" if run else "")
