"""A running stack's files are for its user alone, and its password is in one file: not in another, not in `ps`."""

import stat
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from include.airflow.client import password, passwords_path
from include.settings import Settings
from stack.supervision.stray_processes import MARKER
from stack.supervision.supervisor import marker
from tests.support.waiting import wait_until

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture(scope="module")
def home(full_stack: Settings) -> Path:
    """The home of the stack, once every kind of process has written to it: the stream driver is the last."""
    checkpoints = full_stack.home / "checkpoints"
    wait_until(lambda: list(checkpoints.rglob("metadata")), "a query of the stream has a checkpoint")
    return full_stack.home


def open_to_others(folder: Path) -> list[Path]:
    """Return what other users can reach in a folder, if they can reach the folder itself."""
    found = []
    for path in folder.iterdir():
        # Replaced or removed at this moment, or a link, whose own permissions mean nothing.
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & OTHERS:
                found.append(path)
                found += open_to_others(path) if stat.S_ISDIR(mode) else []
    return found


def command_lines(home: Path) -> list[str]:
    """Return the command lines of the processes of a home, as `ps` shows them."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == marker(home):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def test_no_other_user_can_reach_a_file(home: Path) -> None:
    assert open_to_others(home) == []


def test_the_password_is_in_one_file_and_in_no_command_line(full_stack: Settings, home: Path) -> None:
    secret = password(home, full_stack.airflow)
    containing = set()
    for path in home.rglob("*"):
        try:
            if path.is_file() and secret.encode() in path.read_bytes():
                containing.add(path)
        except FileNotFoundError:
            continue
    lines = command_lines(home)

    assert containing == {passwords_path(home)}
    assert len(lines) > 8
    assert [line for line in lines if secret in line] == []
