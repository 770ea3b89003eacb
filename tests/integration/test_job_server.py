"""Lake jobs share the job server's Spark session, are as separate as processes, and end with their launchers."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from include.files import holder_of, is_locked
from include.settings import Settings
from stack.launchers.direct_submit import launch
from stack.launchers.job_client import server_socket
from stack.lifecycle import stop
from tests.support.lake.lake_ledger import LakeLedger
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

# A job waits for as long as a file exists, while it reads this declaration.
MODEL = """
import time
from dataclasses import replace
from pathlib import Path
from include.read_models.balance.model import READ_MODEL as BALANCE
while Path(__file__).with_name("hold").exists():
    time.sleep(0.05)
READ_MODEL = replace(BALANCE, name="served")
"""
TIMEOUT_S = 120.0
# A job that uses no Spark, and ends with status 0.
LIGHT = ("--help",)
KEYS = 20
# Settings with which a job needs another server.
OTHER = {"lake_retention_h": 24.0}


class Home:
    """A home whose jobs use the job server."""

    def __init__(self, settings: Settings, models: Path) -> None:
        self.settings = settings
        self.hold = models / "hold"
        self.model = models / "served.py"
        self.ledger = LakeLedger(settings, "served")
        self._rounds = 0
        self._started: list[subprocess.Popen[bytes]] = []

    def append(self) -> None:
        """Append another state record of each key."""
        self._rounds += 1
        for number in range(KEYS):
            self.ledger.put(f"key {number}", number * self._rounds, self._rounds)
        self.ledger.flush()

    def start(self, *arguments: str, **changed: object) -> subprocess.Popen[bytes]:
        """Start a compaction."""
        settings = self.settings.changed(**changed)
        process = launch(settings, "compaction", arguments or ("--read-model", "served"))
        self._started.append(process)
        return process

    def run(self, *arguments: str, **changed: object) -> int:
        """Run a compaction and return its status."""
        return self.start(*arguments, **changed).wait(TIMEOUT_S)

    def start_held(self) -> subprocess.Popen[bytes]:
        """Start a compaction that waits until `hold` is removed, in a new server: it reads the declarations once."""
        if self.server:
            self.jvm.kill()
            wait_until(lambda: not self.server, "the server has ended", TIMEOUT_S)
        self._log_path.unlink(missing_ok=True)
        self.hold.touch()
        process = self.start()
        wait_until(lambda: "running " in self.log, "the server runs the job", TIMEOUT_S)
        return process

    @property
    def server(self) -> int:
        """The id of the server's Python process; 0 if there is none."""
        path = server_socket(self.settings.home).with_suffix(".lock")
        return int(holder_of(path)) if is_locked(path) else 0

    @property
    def jvm(self) -> psutil.Process:
        """The JVM of the server, which is the parent of its Python process."""
        jvm = psutil.Process(self.server).parent()
        assert jvm is not None
        return jvm

    @property
    def log(self) -> str:
        """The log of the newest server."""
        return self._log_path.read_text() if self._log_path.exists() else ""

    @property
    def _log_path(self) -> Path:
        return self.settings.home / "logs" / "job-server.log"

    def is_exact(self) -> bool:
        """Whether the table contains the newest record of each key."""
        return self.ledger.rows() == self.ledger.expected

    def end(self) -> None:
        """End the jobs, and with them the server."""
        for process in self._started:
            process.kill()
            process.wait(30)


@pytest.fixture(scope="module")
def module_home(
    servers: Settings, keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    models = tmp_path_factory.mktemp("models")
    (models / "served.py").write_text(MODEL)
    overrides = {"read_models_dir": models, "lake_keep_session_s": 300}
    with sharing_servers(servers, keep_home, **overrides) as settings:
        yield Home(settings, models)


@pytest.fixture
def home(module_home: Home) -> Iterator[Home]:
    yield module_home
    module_home.hold.unlink(missing_ok=True)
    module_home.end()


def test_jobs_share_a_session_and_write_to_their_own_output(
    home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    home.append()
    assert home.run() == 0
    first = home.server
    assert first
    home.append()
    capfd.readouterr()
    assert home.run() == 0
    assert home.server == first
    assert home.is_exact()
    assert "lake/served already contains version 1" in capfd.readouterr().err
    assert "already contains" not in home.log


def test_a_second_job_has_its_own_process_and_a_job_ends_with_its_launcher(home: Home) -> None:
    home.append()
    held = home.start_held()
    assert home.run(*LIGHT) == 0
    assert held.poll() is None
    assert " ".join(LIGHT) not in home.log
    jvm = home.jvm
    assert "java" in jvm.name()
    held.kill()
    jvm.wait(10)
    assert not home.server


def test_a_job_whose_server_is_killed_fails_with_words(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    held = home.start_held()
    home.jvm.kill()
    assert held.wait(TIMEOUT_S) == 1
    assert "The job server ended while it ran this job" in capfd.readouterr().err
    home.hold.unlink()
    assert home.run() == 0
    assert home.is_exact()


def test_an_edited_read_model_and_another_setting_have_a_new_server(home: Home) -> None:
    assert home.run(*LIGHT) == 0
    first = home.server
    home.model.write_text(f"{MODEL}\n")
    assert home.run(*LIGHT) == 0
    second = home.server
    assert second not in (0, first)
    assert home.run(*LIGHT, **OTHER) == 0
    assert home.server not in (0, second)


def test_a_failed_job_says_why_and_leaves_no_server(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    assert home.run("--read-model", "absent", **OTHER) == 1
    assert "absent" in capfd.readouterr().err
    wait_until(lambda: not home.server, "the server has ended", TIMEOUT_S)


def test_the_server_ends_when_no_job_comes(home: Home) -> None:
    assert home.run(*LIGHT, lake_keep_session_s=1) == 0
    wait_until(lambda: not home.server, "the server has ended", TIMEOUT_S)
    assert not server_socket(home.settings.home).exists()


def test_without_the_setting_there_is_no_server(home: Home) -> None:
    assert home.run(*LIGHT, lake_keep_session_s=0) == 0
    assert not home.server


def test_down_ends_the_server(home: Home) -> None:
    assert home.run(*LIGHT) == 0
    server = psutil.Process(home.server)
    stop(home.settings)
    assert not server.is_running()
    assert not home.server
