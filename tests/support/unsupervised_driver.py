"""Runs the stream driver without Airflow, with the same launch wrapper, for tests and benchmarks; and a Spark cluster for it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from include.process import die_with_parent
from include.settings import Settings
from stack.launchers import direct_submit
from stack.launchers.spark_submit import spark_home
from stack.launchers.stream_driver import running, stop
from stack.tools import Tools
from tests.support.stream_process import kill_jvm
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

STOP_TIMEOUT_S = 30
LOOPBACK = "127.0.0.1"
CORES_PER_WORKER = 6


def log_path(settings: Settings) -> Path:
    """Return the file that the driver's log goes to."""
    return settings.home / "logs" / "stream-driver.log"


def launch(settings: Settings, *options: str) -> subprocess.Popen[bytes]:
    """Start the driver with these options of its launcher, and return its process, which becomes the JVM."""
    return direct_submit.launch_driver(settings, log_path(settings), *options)


@contextmanager
def stream_driver(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """Run the driver for the duration of the block, then stop it gracefully."""
    process = launch(settings)
    try:
        yield process
    finally:
        end(settings, process)


class SharedDriver:
    """A driver that several tests share, because a start takes half a minute; a test may kill it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The driver's process, which is the JVM; the driver must have been started."""
        assert self._process is not None
        return self._process

    def ensure_running(self, **overrides: object) -> None:
        """Start the driver with these settings by variable, unless it runs; does not wait until it folds."""
        if self._process is None or self._process.poll() is not None:
            self._process = launch(self._settings.changed(**overrides))

    def kill(self) -> None:
        """Kill the driver's JVM with -9."""
        kill_jvm(self._settings, self.process)

    def stop(self) -> None:
        """Stop the driver gracefully if it runs."""
        if self._process is not None:
            end(self._settings, self._process)

    def __enter__(self) -> Self:
        """Return the shared driver, which is not running yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the driver."""
        self.stop()


def end(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    """Stop a driver gracefully; kill one that does not hold the lock, such as a standby."""
    driver = running(settings.home)
    if driver is None or driver.pid != process.pid:
        # The driver has ended, or is waiting for the lock and has written nothing.
        process.kill()
    else:
        stop(settings.home, timeout_s=STOP_TIMEOUT_S)
    process.wait(STOP_TIMEOUT_S)


class LogFile:
    """What has been written to a log file since the last `forget`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.forget()

    def forget(self) -> None:
        """Ignore what is in the file now."""
        self._begin = self._path.stat().st_size if self._path.exists() else 0

    def wait_for(self, text: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until the text has been written, and call `meanwhile` again and again."""

        def is_written() -> bool:
            meanwhile()
            with self._path.open("rb") as file:
                file.seek(self._begin)
                return text.encode() in file.read()

        wait_until(is_written, text, poll_s=0.1)


@contextmanager
def spark_cluster(settings: Settings, folder: Path) -> Iterator[str]:
    """Run a Spark standalone cluster on loopback, a master and two workers, with its logs and work in a folder; yields the master's URL."""
    port, *ui_ports = free_ports(4)
    url = f"spark://{LOOPBACK}:{port}"
    log = folder / "cluster.log"
    with ExitStack() as daemons:
        master = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(ui_ports[0]))
        daemons.enter_context(_daemon(settings, "master.Master", *master, log=log))
        wait_until(lambda: "New state: ALIVE" in log.read_text(), "the master is up")
        for number, ui_port in enumerate(ui_ports[1:]):
            worker = ("--host", LOOPBACK, "--webui-port", str(ui_port), "--cores", str(CORES_PER_WORKER))
            work = ("--memory", "1g", "--work-dir", str(folder / f"worker-{number}"), url)
            daemons.enter_context(_daemon(settings, "worker.Worker", *worker, *work, log=log))
        wait_until(lambda: log.read_text().count("Successfully registered with master") == 2, "two workers")
        yield url


@contextmanager
def _daemon(settings: Settings, class_name: str, *arguments: str, log: Path) -> Iterator[None]:
    home = spark_home(Tools(settings.tools).stream_python)
    environment = {
        **os.environ,
        "FOLDLAKE_HOME": str(settings.home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": str(Tools(settings.tools).stream_python),
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{class_name}", *arguments]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A killed test run must leave no daemon.
            preexec_fn=die_with_parent,  # noqa: PLW1509 - only a system call
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
