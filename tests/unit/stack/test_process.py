"""A process that sets the parent-death signal ends with its parent, and so do its forks; a process can lower its priority."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from include.process import GroupPriority, lower_threads
from include.settings import CHECKOUT
from tests.support.waiting import wait_until

PATIENCE_S = 20.0

# Each prints its process id, the parent first.
CHILD = "from include.process import die_with_parent; die_with_parent(); "
REPLACED_CHILD = (
    "import os, subprocess, sys, time\n"
    f'code = {CHILD!r} + \'import os; os.execvp("sleep", ["sleep", "600"])\'\n'
    "child = subprocess.Popen([sys.executable, '-c', code])\n"
    "print(child.pid, flush=True); time.sleep(600)\n"
)
FORKED_CHILDREN = (
    "import os, time\n"
    "from include.process import forks_die_with_this_process\n"
    "forks_die_with_this_process()\n"
    "if os.fork() == 0:\n"
    "    if os.fork() == 0:\n"
    "        print(os.getpid(), flush=True)\n"
    "    time.sleep(600)\n"
    "time.sleep(600)\n"
)
GIVES_WAY = (
    "import os, subprocess; from include.process import lower_priority; lower_priority(7); "
    "print(os.getsid(0) == os.getpid(), flush=True); "
    "subprocess.run(['sh', '-c', 'nice; cat /proc/self/autogroup'], check=True)"
)
CHANGES_PRIORITY = (
    "import os, subprocess, sys; from include.process import GroupPriority; os.getloadavg = lambda: (1e3, 0, 0); "
    "child = subprocess.Popen(['sleep', '600']); base = os.nice(0); group = GroupPriority(base); "
    "nice = lambda: os.getpriority(os.PRIO_PROCESS, child.pid); "
    "print(base, group.change(7) and nice(), int(group.change(0)), nice(), sep='\\n'); child.kill()"
)
ENABLED = Path("/proc/sys/kernel/sched_autogroup_enabled")
HAS_AUTOGROUPS = ENABLED.exists() and ENABLED.read_text().strip() == "1"


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def named(pid: int, name: str) -> bool:
    try:
        return psutil.Process(pid).name() == name
    except psutil.NoSuchProcess:
        return False


def launched(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="other systems use a watching thread, which an exec ends")
def test_a_process_dies_with_its_parent_also_after_an_exec() -> None:
    with launched(REPLACED_CHILD) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_until(lambda: named(child, "sleep"), "the child runs", PATIENCE_S)

        parent.send_signal(signal.SIGKILL)

    wait_until(lambda: gone(child), "the child is gone", PATIENCE_S)


def test_all_descendants_die_with_a_process() -> None:
    with launched(FORKED_CHILDREN) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        assert not gone(grandchild)

        parent.send_signal(signal.SIGKILL)

    wait_until(lambda: gone(grandchild), "the grandchild is gone", PATIENCE_S)


def lines_of(code: str, *, new_session: bool = False) -> list[str]:
    command = [sys.executable, "-c", code]
    result = subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, check=True, start_new_session=new_session
    )
    return [line.strip() for line in result.stdout.splitlines()]


@pytest.mark.skipif(not HAS_AUTOGROUPS, reason="the kernel has no autogroups")
@pytest.mark.parametrize("new_session", [False, True])
def test_its_session_and_its_children_are_nice(new_session: bool) -> None:
    leads_session, nice, autogroup = lines_of(GIVES_WAY, new_session=new_session)

    assert nice == str(os.nice(0) + 7)
    assert autogroup.endswith(" nice 7")
    assert leads_session == "True"


def test_the_priority_of_a_group_is_that_of_what_it_does() -> None:
    base, lowered, can_raise, raised = map(int, lines_of(CHANGES_PRIORITY, new_session=True))

    assert lowered == base + 7
    # Without the permission, work that needs the priority can be done while a core is idle.
    assert (raised, can_raise) in {(base, 1), (lowered, 0)}


@pytest.mark.parametrize(("load", "is_fit"), [(0.1, True), (1_000.0, False)])
def test_a_priority_that_cannot_be_raised_suffices_while_a_core_is_idle(
    load: float, is_fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))

    assert GroupPriority(os.nice(0) - 1).change(0) is is_fit
    assert GroupPriority(os.nice(0)).change(0)


def test_zero_changes_nothing() -> None:
    code = "import os; from include.process import lower_priority; lower_priority(0); print(os.nice(0), os.getsid(0))"

    lines = lines_of(code)

    assert lines == [f"{os.nice(0)} {os.getsid(0)}"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no nice values of threads")
def test_threads_of_a_name_get_a_lower_priority() -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        wait_until(lambda: named(child.pid, "sleep"), "the program runs", PATIENCE_S)

        assert lower_threads(child.pid, "C2 Compiler", 3) == 0
        assert lower_threads(child.pid, "sle", 3) == 1
        assert psutil.Process(child.pid).nice() == max(3, os.nice(0))
    finally:
        child.kill()
        child.wait()
    assert lower_threads(child.pid, "sle", 3) == 0
