"""Runs a lake job in the home's job server, which keeps its Spark session for the next job; starts the server if there is none.

A job takes the server's lock for its own duration: a second one at the same time runs in a process of its own.
"""

import hmac
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from include.errors import SettingsError
from include.files import FileLock
from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.job_protocol import ACCEPTED, JobRequest, receive_line, receive_status, send_request
from include.stream.pseudonym_key import pseudonym_key
from include.waiting import wait_for
from stack.launchers.spark_submit import master_of
from stack.launchers.stream_jvm import configuration
from stack.supervision.configuration import declarations_digest, log_path, unix_socket
from stack.supervision.stray_processes import MARKER
from stack.supervision.supervisor import marker

APPLICATIONS = CHECKOUT / "spark_jobs"
SERVER = APPLICATIONS / "job_server.py"
# The folders whose code a job runs.
CODE = ("include", "spark_jobs")
START_TIMEOUT_S = 120.0
POLL_INTERVAL_S = 0.05
LOG_LINES = 20


def run_in_server(settings: Settings, arguments: Sequence[str]) -> int | None:
    """Run spark-submit's arguments in the job server, with this process's output, and return the job's exit status.

    Returns None if the job is to have a process of its own: its master is a cluster, the server runs another job, it cannot be
    started, or there is none by the setting `lake_keep_session_s`.
    """
    index = next((i for i, one in enumerate(arguments) if Path(one).parent == APPLICATIONS), None)
    if index is None or not settings.lake.keep_session_s or not _is_local(arguments):
        return None
    lock = FileLock(settings.home / "run" / "job-server.busy")
    if not lock.try_acquire():
        return None
    try:
        options = arguments[:index]
        request = JobRequest(
            _fingerprint(settings, options),
            arguments[index],
            tuple(arguments[index + 1 :]),
            settings.lake.niceness,
        )
        connection = _connect_and_send(settings, request) or _start_and_send(settings, options, request)
        if connection is None:
            return None
        with connection:
            status = receive_status(connection)
        if status is None:
            sys.stderr.write(f"The job server ended while it ran this job. {_end_of_log(settings)}\n")
            return 1
        return status
    finally:
        lock.release()


def _is_local(arguments: Sequence[str]) -> bool:
    """Whether the job runs on this machine. One whose master is not defined fails where it would be submitted."""
    try:
        return master_of(arguments).startswith("local")
    except SettingsError:
        return False


def server_socket(home: Path) -> Path:
    """Return the path of the server's socket."""
    path = home / "run" / "job-server.sock"
    return unix_socket(path, path)


def _connect_and_send(settings: Settings, request: JobRequest) -> socket.socket | None:
    """Return a connection to the server that has accepted the request; None if there is no server, or it ends."""
    path = server_socket(settings.home)
    with ExitStack() as unless_accepted:
        connection = unless_accepted.enter_context(socket.socket(socket.AF_UNIX))
        try:
            # In the temporary directory, another user's process may have taken the name.
            if path.stat().st_uid != os.getuid():
                return None
            connection.connect(str(path))
            send_request(connection, request, (1, 2))
        except OSError:
            return None
        if receive_line(connection) != ACCEPTED:
            return None
        unless_accepted.pop_all()
        return connection


def _start_and_send(settings: Settings, options: Sequence[str], request: JobRequest) -> socket.socket | None:
    try:
        server = _start(settings, options, request.fingerprint)
    except OSError as error:
        # Without space for its log, for example.
        sys.stderr.write(f"The job server cannot be started ({error}): the job has a process of its own.\n")
        return None
    connections: list[socket.socket] = []

    def is_decided() -> bool:
        has_ended = server.poll() is not None
        connection = _connect_and_send(settings, request)
        if connection is not None:
            connections.append(connection)
        return connection is not None or has_ended

    wait_for(is_decided, timeout_s=START_TIMEOUT_S, poll_s=POLL_INTERVAL_S)
    if not connections:
        sys.stderr.write(f"The job server did not start. {_end_of_log(settings)}\n")
    return connections[0] if connections else None


def _start(settings: Settings, options: Sequence[str], fingerprint: str) -> subprocess.Popen[bytes]:
    """Start a server that outlives this process, but not the stack of its home."""
    log = _log(settings.home)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    command = [sys.executable, "-m", "stack.launchers.batch_submit", "server", *options, str(SERVER)]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, "--socket", str(server_socket(settings.home)), "--fingerprint", fingerprint],
            cwd=CHECKOUT,
            env={**os.environ, **settings_environment(settings), MARKER: marker(settings.home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _fingerprint(settings: Settings, options: Sequence[str]) -> str:
    """Return a digest of all that a server has read once: its settings, its Spark configuration, the code and the read models."""
    code = sorted(
        (str(path), path.stat().st_mtime_ns, path.stat().st_size)
        for folder in CODE
        for path in (CHECKOUT / folder).rglob("*.py")
    )
    # A job that a node starts, to explain a key, is not to end the server that Airflow's jobs use. A job's priority is its own.
    of_one_job = {
        "node_name": "",
        "node_port": 0,
        "node_url": "",
        "node_store_dir": None,
        "lake_niceness": 0,
    }
    everything = (
        settings_environment(settings.changed(**of_one_job)),
        master_of(options),
        sorted(configuration(options).items()),
        declarations_digest(settings.declaration_folders),
        code,
    )
    # Keyed: the digest is an argument of the server, and the settings contain secrets.
    return hmac.new(pseudonym_key(settings), json.dumps(everything).encode(), "sha256").hexdigest()


def _log(home: Path) -> Path:
    return log_path(home, "job-server")


def _end_of_log(settings: Settings) -> str:
    try:
        lines = _log(settings.home).read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    except OSError:
        lines = []
    return "\n".join((f"Its log is {_log(settings.home)}, which ends with:", *lines))
