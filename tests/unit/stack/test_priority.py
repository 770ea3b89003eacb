"""A process with a lower priority has it relative to all processes of the machine, and so do its children."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import CHECKOUT

GIVES_WAY = (
    "import os, subprocess; from include.process import lower_priority; lower_priority(7); "
    "print(os.getsid(0) == os.getpid(), flush=True); "
    "subprocess.run(['sh', '-c', 'nice; cat /proc/self/autogroup'], check=True)"
)
ENABLED = Path("/proc/sys/kernel/sched_autogroup_enabled")
HAS_AUTOGROUPS = ENABLED.exists() and ENABLED.read_text().strip() == "1"


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


def test_zero_changes_nothing() -> None:
    code = "import os; from include.process import lower_priority; lower_priority(0); print(os.nice(0), os.getsid(0))"

    lines = lines_of(code)

    assert lines == [f"{os.nice(0)} {os.getsid(0)}"]
