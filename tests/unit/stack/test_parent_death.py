"""A process that sets the parent-death signal ends with its parent, and so do its forks."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

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
