"""`./foldlake up` with changed code replaces nodes and the stream without a failed request; code that does not work replaces nothing."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from include.settings import Settings
from include.stream import driver_launch, query_transfer
from stack.components.stream import STREAM_SUPERVISOR
from stack.launchers import stream_driver
from stack.launchers.supervisor_replacement import successor
from stack.supervision.supervisor import Supervisor
from tests.integration.deploys.traffic import Traffic, assert_same_launch
from tests.integration.releases.hosts import Release, copied_release
from tests.support.http.held_server import servers_of
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

TIMEOUT_S = 300.0
# Of a release that has all its processes noted.
NOTE = """
(Path(os.environ["FOLDLAKE_HOME"]) / f"ran-{RELEASE}-{os.getpid()}").touch()
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, servers: Settings) -> Release:
    """A copy of the code, which the tests change."""
    return copied_release(tmp_path_factory.mktemp("release"), servers.tools)


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory, servers: Settings) -> Release:
    """The next release, in a folder of its own."""
    return copied_release(tmp_path_factory.mktemp("another"), servers.tools)


@pytest.fixture(scope="module")
def stack(release: Release, servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """A stack that runs this code."""
    with sharing_servers(servers, keep_home, stream_standby="on", compaction_interval_s=0) as home:
        release.run(home, "up")
        yield home


@pytest.fixture(scope="module")
def traffic(stack: Settings) -> Traffic:
    found = Traffic(stack)
    found.settle()

    def is_steady() -> bool:
        # The nodes have just joined their group, and may still distribute the partitions.
        found.failed.clear()
        with found.running():
            time.sleep(3.0)
        return not found.failed

    wait_until(is_steady, "no request fails", TIMEOUT_S)
    return found


@contextmanager
def changed(release: Release, name: str, lines: str) -> Iterator[None]:
    """Append lines to a module of the release during a block."""
    path = release.checkout / name
    before = path.read_text(encoding="utf-8")
    path.write_text(before + lines, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def noting(name: str) -> str:
    """Return lines by which each process that loads the settings leaves a file, named after the release."""
    return f'\nimport os\nRELEASE = "{name}"{NOTE}'


def plan(release: Release, settings: Settings) -> dict[str, str]:
    """Return process -> what `up` would do, and why."""
    lines = release.run(settings, "up", "--plan").splitlines()
    return {words[0]: " ".join(words[1:]) for line in lines if (words := line.split())}


HELD = ("node-1-http", "node-1-materializer", "node-2-http", "node-2-materializer", STREAM_SUPERVISOR)


def processes(settings: Settings) -> dict[str, int | None]:
    """Return the processes that run the code of a release."""
    found = {name: servers_of(settings, name)[-1].pid for name in HELD}
    states = Supervisor(settings).states()
    airflow = {name: state.pid for name, state in states.items() if name.startswith("airflow")}
    driver = stream_driver.running(settings.home)
    assert driver is not None
    python = driver.python()
    assert python is not None
    return {**found, **airflow, "stream-driver": python.pid}


def holders(settings: Settings) -> list[int | None]:
    states = Supervisor(settings).states()
    return [states[name].pid for name in HELD]


def has_run(settings: Settings, name: str, pid: int | None) -> bool:
    return (settings.home / f"ran-{name}-{pid}").exists()


def test_code_that_does_not_work_replaces_nothing(
    release: Release, stack: Settings, traffic: Traffic
) -> None:
    before = processes(stack)

    with (
        traffic.running(),
        changed(release, "spark_jobs/streaming/stream_driver.py", "\nraise ValueError('a broken release')\n"),
        pytest.raises(AssertionError, match="a broken release"),
    ):
        release.run(stack, "up")

    assert processes(stack) == before
    assert set(plan(release, stack).values()) == {"keep", "changes."}
    traffic.settle()
    assert traffic.failed == []


def test_a_release_in_another_folder_replaces_every_process_without_a_failed_request(
    another: Release, stack: Settings, traffic: Traffic
) -> None:
    held, launch = holders(stack), driver_launch.read_report(stack.home)
    with changed(another, "include/settings/__init__.py", "\nfrom pathlib import Path" + noting("another")):
        planned = plan(another, stack)
        with traffic.running():
            another.run(stack, "up")
        assert set(plan(another, stack).values()) == {"keep", "changes."}
        traffic.settle()

        after = processes(stack)
    assert {name for name, what in planned.items() if "code" in what.split(", ")} == set(after)
    assert [name for name, pid in after.items() if not has_run(stack, "another", pid)] == []
    assert holders(stack) == held
    assert traffic.failed == []
    assert traffic.without_answer == []
    assert_same_launch(stack, launch)


def present_supervisor(settings: Settings) -> int:
    return servers_of(settings, STREAM_SUPERVISOR)[0].pid


def new_supervisor(settings: Settings) -> int:
    return servers_of(settings, STREAM_SUPERVISOR)[-1].pid


def present_driver(settings: Settings) -> int:
    found = stream_driver.running(settings.home)
    assert found is not None
    return found.pid


def new_driver(settings: Settings) -> int:
    found = successor(settings.home)
    assert found is not None
    return found.pid


def holder(settings: Settings) -> int:
    found = Supervisor(settings).states()[STREAM_SUPERVISOR].pid
    assert found is not None
    return found


def is_launched(settings: Settings) -> bool:
    found = successor(settings.home)
    return found is not None and found.pid != 0


def is_ready(settings: Settings) -> bool:
    found = successor(settings.home)
    return found is not None and found.is_ready


def is_passing(settings: Settings) -> bool:
    return query_transfer.read(settings.home) is not None


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        pytest.param(present_supervisor, is_ready, id="the present supervisor when the new driver is ready"),
        *(
            pytest.param(*case, id=name, marks=pytest.mark.endurance)
            for name, case in {
                "the present supervisor before the new driver is ready": (present_supervisor, is_launched),
                "the present supervisor while folds are passed": (present_supervisor, is_passing),
                "the present driver before the new one is ready": (present_driver, is_launched),
                "the present driver when the new one is ready": (present_driver, is_ready),
                "the present driver while folds are passed": (present_driver, is_passing),
                "the new supervisor before its driver is ready": (new_supervisor, is_launched),
                "the new supervisor while folds are passed": (new_supervisor, is_passing),
                "the new driver before it is ready": (new_driver, is_launched),
                "the new driver while folds are passed": (new_driver, is_passing),
                "the holder while folds are passed": (holder, is_passing),
            }.items()
        ),
    ],
)
def test_a_kill_leaves_one_driver_that_folds(
    another: Release,
    stack: Settings,
    traffic: Traffic,
    victim: Callable[[Settings], int],
    moment: Callable[[Settings], bool],
) -> None:
    def kill() -> None:
        wait_until(lambda: moment(stack), "the moment has come", TIMEOUT_S, 0.02)
        os.kill(victim(stack), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    # Each time other code, also after an `up` that has failed.
    lines = f"\n# {uuid.uuid4()}\n"
    with traffic.running(), changed(another, "spark_jobs/streaming/stream_driver.py", lines):
        # It fails if the new supervisor or driver is killed.
        with suppress(AssertionError):
            another.run(stack, "up", "--only", "stream")
        killer.join()
        wait_until(lambda: successor(stack.home) is None, "one supervisor is left", TIMEOUT_S)

    wait_until(lambda: len(servers_of(stack, STREAM_SUPERVISOR)) == 1, "the other one has ended", TIMEOUT_S)
    traffic.settle()
    assert traffic.failed == []
