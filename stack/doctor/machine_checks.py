"""Checks of the machine: Python, Java, memory, the disks, and the ports of the embedded stack. Standard library only."""

import errno
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from include.machine import memory_bytes
from stack.doctor.finding import Finding, State
from stack.provisioning.java import JavaNotFoundError, find_java
from stack.provisioning.layout import DOWNLOADED, Layout
from stack.provisioning.requirements import (
    BYTES_PER_GB,
    DISK_GB,
    MEMORY_GB,
    OLDEST_PYTHON,
    PYTHONS,
    STACK_MEMORY_GB,
    TOOLS_FILES,
    java_remedy,
    java_text,
    python_remedy,
    python_text,
)

LESS_MEMORY = (
    "To need less, set FOLDLAKE_STREAM_STANDBY=off and FOLDLAKE_LAKE_KEEP_SESSION_S=0, or use servers on other machines "
    "(docs/how-to/own-servers.md)."
)
# A full disk stops the broker. The demo's data takes less than a tenth of the second.
HOME_PROBLEM_GB, HOME_WARNING_GB = 0.5, 2.0


def check_python(version: tuple[int, int, int] = sys.version_info[:3]) -> Finding:
    """Check the version of the Python that runs this process."""
    found = f"{'.'.join(map(str, version))} ({sys.executable})"
    if version[:2] not in PYTHONS:
        action = f"This version is not tested. {python_remedy()}."
        return Finding("Python", State.WARNING, found, python_text(), action)
    if version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        action = f"Install its updates: releases before {oldest} are not tested."
        return Finding("Python", State.WARNING, found, f"{oldest} or newer", action)
    return Finding("Python", State.OK, found)


def check_java(environment: dict[str, str] | None = None) -> Finding:
    """Check that a Java for Kafka and Spark is installed. environment: with JAVA_HOME and PATH; None for that of this process."""
    try:
        java = find_java(environment)
    except JavaNotFoundError as error:
        _, _, rejected = str(error).partition("Found:\n")
        found = "; ".join(line.strip() for line in rejected.splitlines() if line.startswith("  "))
        return Finding("Java", State.PROBLEM, found, java_text(), f"{java_remedy()}.")
    return Finding("Java", State.OK, f"{java.version} ({java.home})")


def check_memory(
    total_bytes: int | None = None, available_bytes: int | None = None, *, has_whole_stack: bool = True
) -> Finding:
    """Check the memory of this machine or container.

    total_bytes: its size; None to find it out. available_bytes: what other programs leave; None if it is unknown, or if the stack runs.
    has_whole_stack: whether all servers of the stack run here; a part of them needs less.
    """
    gigabytes = (memory_bytes() if total_bytes is None else total_bytes) / BYTES_PER_GB
    found, needed = f"{gigabytes:.1f} GB", f"{MEMORY_GB} GB"
    if not has_whole_stack:
        return Finding(
            "memory", State.OK, f"{found}; not compared, because some of the servers run elsewhere"
        )
    if gigabytes < STACK_MEMORY_GB:
        action = f"Give this machine or container {needed}, or processes will be killed. {LESS_MEMORY}"
        return Finding("memory", State.PROBLEM, found, needed, action)
    if gigabytes < MEMORY_GB:
        action = f"This is enough for the stack, but not for a lake job beside it. {LESS_MEMORY}"
        return Finding("memory", State.WARNING, found, needed, action)
    if available_bytes is not None and available_bytes / BYTES_PER_GB < MEMORY_GB:
        found += f", of which {available_bytes / BYTES_PER_GB:.1f} GB are available"
        return Finding(
            "memory",
            State.WARNING,
            found,
            needed,
            f"Stop other programs before `./foldlake up`. {LESS_MEMORY}",
        )
    return Finding("memory", State.OK, found)


def check_tools_disk(layout: Layout, needed_gb: float = DISK_GB, needed_files: int = TOOLS_FILES) -> Finding:
    """Check the disk of the tools directory; when everything is downloaded, it needs no more space."""
    check = "disk of the tools"
    folder = existing(layout.root)
    free_gb, files = free_space(folder)
    found = f"{free_gb:.1f} GB free in {layout.root}"
    if all(layout.is_ready(part) for part in DOWNLOADED):
        return Finding(check, State.OK, f"{found}; the tools are installed")
    action = "Free some space, or set FOLDLAKE_TOOLS to a directory on a larger disk."
    if free_gb < needed_gb:
        return Finding(check, State.PROBLEM, found, f"{needed_gb:g} GB", action)
    if files is not None and files < needed_files:
        return Finding(check, State.PROBLEM, f"room for {files} more files", f"{needed_files}", action)
    return Finding(check, State.OK, found)


def check_home_disk(
    home: Path, problem_gb: float = HOME_PROBLEM_GB, warning_gb: float = HOME_WARNING_GB
) -> Finding:
    """Check the disk of FOLDLAKE_HOME, which contains the log."""
    check = "disk of the data"
    free_gb, files = free_space(existing(home))
    found = f"{free_gb:.1f} GB free in {home}"
    action = "Free some space, or set FOLDLAKE_HOME to a directory on a larger disk. The log grows with each event."
    if free_gb < problem_gb:
        return Finding(check, State.PROBLEM, found, f"{problem_gb:g} GB", action)
    if free_gb < warning_gb:
        return Finding(check, State.WARNING, found, f"{warning_gb:g} GB", action)
    if files is not None and files < TOOLS_FILES // 10:
        return Finding(check, State.WARNING, f"room for {files} more files", f"{TOOLS_FILES // 10}", action)
    return Finding(check, State.OK, found)


def existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def free_space(folder: Path) -> tuple[float, int | None]:
    """Return the free space in GB, and the number of files that can be created; None if the file system has no such limit."""
    space = os.statvfs(folder)
    return shutil.disk_usage(folder).free / BYTES_PER_GB, space.f_favail if space.f_files else None


LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class NeededPort:
    """A port, the setting that changes it, and the process that listens on it."""

    number: int
    setting: str
    process: str


def check_ports(needed: Sequence[NeededPort], holder: Callable[[int], str]) -> Iterator[Finding]:
    """Yield a finding for each port that is taken or needed twice; one for all of them if there is none.

    needed: the ports of processes that are not running. holder: returns a description of the process that listens on a port.
    """
    has_problem = False
    by_number: dict[int, NeededPort] = {}
    for port in needed:
        other = by_number.setdefault(port.number, port)
        problem = _double(port, other) if other is not port else _taken(port, holder)
        if problem is not None:
            has_problem = True
            yield problem
    if not has_problem:
        numbers = ", ".join(str(number) for number in sorted(by_number))
        yield Finding("ports", State.OK, f"free: {numbers}" if numbers else "none needed")


def _double(port: NeededPort, other: NeededPort) -> Finding:
    found = f"needed by {other.process} and by {port.process}"
    if port.setting == other.setting:
        action = f"Give {port.setting} different ports."
    else:
        action = f"Set {other.setting} or {port.setting} to another port."
    return Finding(f"port {port.number}", State.PROBLEM, found, action=action)


def _taken(port: NeededPort, holder: Callable[[int], str]) -> Finding | None:
    check, needed = f"port {port.number}", f"free for {port.process}"
    try:
        failure = _bind_error(port.number)
    except OverflowError:
        action = f"Set {port.setting} to a number between 1024 and 65535."
        return Finding(check, State.PROBLEM, "not a port", needed, action)
    if failure == errno.EADDRINUSE:
        action = f"Stop that process, or set {port.setting} to a free port."
        return Finding(check, State.PROBLEM, f"in use by {holder(port.number)}", needed, action)
    if failure:
        action = f"Set {port.setting} to a free port above 1023."
        return Finding(check, State.PROBLEM, f"cannot be opened: {errno.errorcode[failure]}", needed, action)
    return None


def _bind_error(port: int) -> int:
    """Return the error number of an attempt to listen on a port; 0 for none."""
    with socket.socket() as probe:
        # As servers do: connections that ended a moment ago do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            return error.errno or errno.EIO
    return 0
