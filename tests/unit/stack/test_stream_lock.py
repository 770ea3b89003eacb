"""One stream driver per home: a second one waits, then fails and names the first one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from include.errors import SettingsError
from include.process import LAUNCHER
from include.scratch import scratch_dir
from include.settings import CHECKOUT, Settings, settings_environment
from stack.launchers import spark_submit, stream_driver
from stack.launchers.stream_driver import DriverLockedError
from tests.support.waiting import wait_until

# Takes the lock and executes another program, as the wrapper executes the JVM. argv: the parent's process id.
HOLDER = """
import os, psutil, sys
from include.settings import Settings
from stack.launchers import stream_driver
home = Settings().home
stream_driver.acquire(home, wait_s=0)
started = stream_driver.started_s(psutil.Process())
stream_driver.announce(home, stream_driver.Driver(os.getpid(), int(sys.argv[1]), started, "local[1]"))
print("locked", flush=True)
os.execvp("sleep", ["sleep", "600"])
"""

# Like the JVM: one long-lived child, and a stream of short-lived ones.
PARENT = """
import subprocess, sys
long_lived = subprocess.Popen(["sleep", "600"])
print(long_lived.pid, flush=True)
while True:
    subprocess.run(["true"])
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path)


@contextmanager
def holder(settings: Settings, parent_pid: int) -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent_pid)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process.pid
        finally:
            process.kill()


def test_the_lock_outlives_an_exec_and_names_its_holder(settings: Settings) -> None:
    with holder(settings, os.getpid()) as pid:
        driver = stream_driver.running(settings.home)

        assert driver is not None
        assert (driver.pid, driver.master) == (pid, "local[1]")


def test_a_second_driver_fails_and_names_the_first(settings: Settings) -> None:
    with holder(settings, os.getpid()) as pid:
        began_s = time.monotonic()
        with pytest.raises(stream_driver.DriverLockedError, match=f"process {pid}"):
            stream_driver.acquire(settings.home, wait_s=0.5)

        assert time.monotonic() - began_s >= 0.5


def test_the_lock_is_free_once_its_holder_was_killed(settings: Settings) -> None:
    with holder(settings, os.getpid()) as pid:
        psutil.Process(pid).kill()

        stream_driver.acquire(settings.home, wait_s=10).release()

    assert stream_driver.running(settings.home) is None


def test_an_orphaned_driver_is_killed(settings: Settings) -> None:
    # Its parent is this process: with another parent recorded, it is considered an orphan.
    with holder(settings, parent_pid=1) as pid:
        stream_driver.acquire(settings.home, wait_s=10).release()

        assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_python_process_is_found_among_children_that_come_and_go() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            python = int(parent.stdout.readline())
            started_s = stream_driver.started_s(psutil.Process(parent.pid))
            driver = stream_driver.Driver(parent.pid, os.getpid(), started_s, "local[1]")

            found = {process.pid if process else None for process in (driver.python() for _ in range(300))}

            assert found == {python}
        finally:
            parent.kill()
            psutil.Process(python).kill()


def test_a_driver_is_recognized_after_the_clock_was_set(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holder(settings, os.getpid()) as pid:
        driver = stream_driver.running(settings.home)
        assert driver is not None
        boot_s, created_s = psutil.boot_time(), psutil.Process(pid).create_time()
        # After the clock is set back by an hour, the kernel reports both times an hour earlier.
        monkeypatch.setattr(psutil, "boot_time", lambda: boot_s - 3600)
        monkeypatch.setattr(psutil.Process, "create_time", lambda _process: created_s - 3600)

        assert driver.process() == psutil.Process(pid)


def test_a_home_without_a_driver_returns_none(settings: Settings) -> None:
    assert stream_driver.running(settings.home) is None
    assert stream_driver.stop(settings.home, timeout_s=1)


def test_no_driver_starts_for_a_launcher_that_has_ended(settings: Settings) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    environment = {**os.environ, **settings_environment(settings), LAUNCHER: str(gone.pid)}
    command = [sys.executable, "-m", "stack.launchers.driver_submit"]

    assert subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode == -signal.SIGKILL
    assert stream_driver.running(settings.home) is None


@pytest.mark.parametrize(
    "script", sorted((CHECKOUT / "stack" / "bin").iterdir(), key=str), ids=lambda p: p.name
)
def test_the_scripts_pass_on_the_id_of_their_launcher(script: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "${LAUNCHER}"\n')
    python.chmod(0o755)
    environment = {**os.environ, "FOLDLAKE_PYTHON": str(python)}

    assert subprocess.check_output([script], env=environment, text=True) == f"{os.getpid()}\n"


@pytest.mark.parametrize("arguments", [["--master", "yarn", "app.py"], ["app.py"], ["--master"]])
def test_an_undefined_connection_is_rejected(arguments: list[str]) -> None:
    with pytest.raises(SettingsError, match="not defined"):
        spark_submit.master_of(arguments)


def test_spark_gets_its_own_environment_without_airflow_variables(settings: Settings) -> None:
    settings = settings.changed(tools=settings.home / "tools")
    spark = settings.tools / "stream" / "lib" / "python3.11" / "site-packages" / "pyspark"
    spark.mkdir(parents=True)
    inherited = {
        "PATH": "/bin",
        "SPARK_HOME": "/elsewhere",
        "PYSPARK_PYTHON": "/elsewhere",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "secret",
        "FOLDLAKE_PARTITIONS": "8",
    }

    python = settings.tools / "stream" / "bin" / "python"

    environment = spark_submit.submit_environment(python, settings.home / "tmp", inherited, "local[8]")

    assert environment["SPARK_HOME"] == str(spark)
    assert environment["PYSPARK_PYTHON"] == str(settings.tools / "stream" / "bin" / "python")
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert environment["PATH"] == "/bin"
    assert environment["FOLDLAKE_PARTITIONS"] == "8"
    assert not any(name.startswith("AIRFLOW") for name in environment)


def test_on_a_cluster_the_driver_is_not_bound_to_loopback(settings: Settings) -> None:
    settings = settings.changed(tools=settings.home / "tools")
    (settings.tools / "stream" / "lib" / "python3.11" / "site-packages" / "pyspark").mkdir(parents=True)

    python = settings.tools / "stream" / "bin" / "python"
    scratch = settings.home / "tmp"

    assert "SPARK_LOCAL_IP" not in spark_submit.submit_environment(python, scratch, {}, "spark://host:7077")


STANDBY = """
import os, sys, psutil
from pathlib import Path
from stack.launchers.stream_driver import Driver, await_turn, started_s
own = Driver(os.getpid(), os.getppid(), started_s(psutil.Process()), "local[1]")
await_turn(Path(sys.argv[1]), own, Path(sys.argv[2]))
os.execvp("sleep", ["sleep", "600"])
"""


def test_a_standby_holds_the_lock_from_the_end_of_the_driver_to_its_own(
    settings: Settings, tmp_path: Path
) -> None:
    turn = tmp_path / "turn"
    lock = stream_driver.acquire(settings.home, wait_s=1)
    command = [sys.executable, "-c", STANDBY, str(settings.home), str(turn)]
    with subprocess.Popen(command, cwd=CHECKOUT) as standby:
        wait_until(lambda: psutil.Process(standby.pid).name() == "sleep", "it has executed its program")
        assert not turn.exists()

        lock.release()
        wait_until(turn.exists, "it is the standby's turn")

        driver = stream_driver.running(settings.home)
        assert driver is not None
        assert driver.pid == standby.pid
        with pytest.raises(DriverLockedError):
            stream_driver.acquire(settings.home, wait_s=0)
        driver.kill()
    stream_driver.acquire(settings.home, wait_s=1).release()


def test_a_standby_that_is_killed_never_takes_the_lock(settings: Settings, tmp_path: Path) -> None:
    turn = tmp_path / "turn"
    lock = stream_driver.acquire(settings.home, wait_s=1)
    command = [sys.executable, "-c", STANDBY, str(settings.home), str(turn)]
    with subprocess.Popen(command, cwd=CHECKOUT) as standby:
        wait_until(lambda: psutil.Process(standby.pid).name() == "sleep", "it has executed its program")
        (waiting,) = psutil.Process(standby.pid).children()
        standby.kill()
    wait_until(lambda: not waiting.is_running(), "the process that waits for its turn has ended")

    lock.release()

    stream_driver.acquire(settings.home, wait_s=1).release()
    assert not turn.exists()


SCRATCH = """
import os, sys
from pathlib import Path
from include.scratch import scratch_dir
print(scratch_dir(Path(sys.argv[1])), flush=True)
os.execvp("sleep", ["sleep", "600"])
"""


def test_a_folder_is_removed_when_its_process_has_ended_whatever_its_number_means_elsewhere(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", SCRATCH, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        used = Path(process.stdout.readline().strip())
        wait_until(lambda: psutil.Process(process.pid).name() == "sleep", "it has executed its program")
        # As another container sees it: no process has this number.
        other = tmp_path / f"{2**22 + 1}-0"
        used.with_name(used.name + ".lock").rename(tmp_path / f"{other.name}.lock")
        used.rename(other)

        scratch_dir(tmp_path)
        assert other.is_dir()
        process.kill()
        process.wait()

    own = scratch_dir(tmp_path)
    assert not other.exists()
    assert own.is_dir()


def test_a_folder_of_the_release_before_is_kept_while_its_process_runs(tmp_path: Path) -> None:
    running, ended = tmp_path / str(os.getpid()), tmp_path / str(2**22 + 1)
    running.mkdir()
    ended.mkdir()

    scratch_dir(tmp_path)

    assert (running.is_dir(), ended.exists()) == (True, False)
