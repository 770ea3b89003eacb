"""Application: keeps a Spark session, and runs the lake's jobs in it, one after another.

A short job in a process of its own spends nearly all of its time on the start of two JVMs and of Spark.

Started by `stack/launchers/job_client.py` with the first job. It ends when no job has come for a while, after a job that failed, after
MAX_JOBS jobs, when memory is short, and when it is asked to run a job with other settings or code than its own, or with a priority that it
may not have.
"""

import argparse
import logging
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from include.errors import FoldlakeError
from include.files import FileLockedError, file_lock
from include.machine import available_bytes
from include.process import GroupPriority, die_with_parent
from include.settings import Settings
from include.spark.job_protocol import ACCEPTED, OUTPUTS, REFUSED, JobRequest, receive_request, send_status
from include.spark.lake_config import lake_config
from spark_jobs.runtime.lake_job import keep_session, release_memory
from spark_jobs.runtime.session import configure_logging, spark_session

LOG = logging.getLogger("foldlake.job-server")
# A server that ends releases its lock within seconds.
LOCK_WAIT_S = 30.0
# Bounds what sessions may leave behind in the JVM: with the default intervals, a new server starts every few hours.
MAX_JOBS = 100
# A launcher sends its request at once.
REQUEST_TIMEOUT_S = 10.0


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True, type=Path, help="path of the Unix socket")
    parser.add_argument("--fingerprint", required=True, help="of the settings and code of the jobs")
    arguments = parser.parse_args()
    configure_logging()
    die_with_parent()
    settings = Settings()
    stack_niceness = os.getpriority(os.PRIO_PROCESS, 0) - settings.lake.niceness
    path: Path = arguments.socket
    with file_lock(path.with_suffix(".lock"), wait_s=LOCK_WAIT_S, error=_another_server):
        spark = spark_session("foldlake-job-server", lake_config(settings.lake))
        keep_session(spark)
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(settings.lake.keep_session_s)
            memory_mb = settings.lake.driver_memory_mb
            priority = GroupPriority(stack_niceness)
            JobServer(
                listener, arguments.fingerprint, memory_mb, lambda: release_memory(spark), priority.change
            ).serve()
            path.unlink(missing_ok=True)
        spark.stop()


class JobServer:
    """Runs the jobs of one launcher after another, in the main thread."""

    def __init__(
        self,
        listener: socket.socket,
        fingerprint: str,
        memory_mb: int,
        release: Callable[[], None],
        change_priority: Callable[[int], bool],
    ) -> None:
        """Serve the launchers that connect to `listener`, as long as this much memory is available after a job and its `release`.

        change_priority: changes the nice value; returns whether a job that needs it can run.
        """
        self._listener = listener
        self._fingerprint = fingerprint
        self._memory = memory_mb * 1024 * 1024
        self._release = release
        self._change_priority = change_priority
        # spark-submit runs an application's Python as a child of its JVM.
        self._jvm = os.getppid()

    def serve(self) -> None:
        """Run jobs until the server is to end."""
        for _ in range(MAX_JOBS):
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                LOG.info("no job has come for %.0f s: ending", self._listener.gettimeout())
                return
            with connection:
                if not self._handle(connection):
                    return
        LOG.info("%d jobs have run: ending", MAX_JOBS)

    def _handle(self, connection: socket.socket) -> bool:
        """Run a launcher's job; return whether to wait for another one."""
        connection.settimeout(REQUEST_TIMEOUT_S)
        try:
            request, outputs = receive_request(connection)
        except OSError as error:
            LOG.info("a launcher has sent no request: %s", error)
            return True
        reason = self._refusal(request, outputs)
        if reason:
            LOG.info("a job needs %s: ending", reason)
            _close(outputs)
            with suppress(OSError):
                connection.sendall(REFUSED)
            return False
        try:
            connection.sendall(ACCEPTED)
            status = self._run_for(connection, request, outputs)
            send_status(connection, status)
        except OSError:
            LOG.info("the launcher has ended: ending")
            return False
        if status:
            return False
        # The launcher has the status, and does not wait for this.
        self._release()
        if available_bytes() < self._memory:
            LOG.info("memory is short: ending")
            return False
        return True

    def _refusal(self, request: JobRequest, outputs: Sequence[int]) -> str:
        """Return what the job needs that this server does not have; empty if it can run here, with its priority."""
        if request.fingerprint != self._fingerprint or len(outputs) != OUTPUTS:
            return "other settings or code"
        return "" if self._change_priority(request.niceness) else "a higher priority"

    def _run_for(self, connection: socket.socket, request: JobRequest, outputs: Sequence[int]) -> int:
        """Run a job while its launcher is there, and return its exit status."""
        LOG.info("running %s %s", request.application, " ".join(request.arguments))
        connection.settimeout(None)
        # Of this job alone: the thread may notice the end of its launcher when the next job runs already.
        has_ended = threading.Event()
        threading.Thread(target=self._end_with_launcher, args=(connection, has_ended), daemon=True).start()
        with _output_to(outputs):
            status = _run(request.application, request.arguments)
        has_ended.set()
        LOG.info("%s ended with status %d", request.application, status)
        return status

    def _end_with_launcher(self, connection: socket.socket, has_ended: threading.Event) -> None:
        """Kill the JVM, and this process with it, when the launcher ends before its job: nothing is written afterwards."""
        with suppress(OSError):
            connection.recv(1)
        if not has_ended.is_set():
            os.kill(self._jvm, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


def _run(application: str, arguments: Sequence[str]) -> int:
    """Run an application as spark-submit would, and return its exit status."""
    own = sys.argv
    sys.argv = [application, *arguments]
    try:
        runpy.run_path(application, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:  # noqa: BLE001 - the process goes on, and its launcher ends with status 1
        traceback.print_exc()
        return 1
    finally:
        sys.argv = own
    return 0


@contextmanager
def _output_to(outputs: Sequence[int]) -> Iterator[None]:
    """Write this process's standard output and standard error to these descriptors in a block, then close them."""
    own = [os.dup(number) for number in (1, 2)]
    try:
        for number, descriptor in zip((1, 2), outputs, strict=True):
            os.dup2(descriptor, number)
        _close(outputs)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip((1, 2), own, strict=True):
            os.dup2(descriptor, number)
        _close(own)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _another_server(locked: FileLockedError) -> FoldlakeError:
    return FoldlakeError(f"Process {locked.holder} is the job server of this home already.")


if __name__ == "__main__":
    main()
