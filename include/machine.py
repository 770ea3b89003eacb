"""The processor cores and the memory that this process may use: the limits of its container, or those of the machine.

Source: the kernel's documentation of control groups (cgroup-v2.rst; memory.rst and sched-bwc.rst for version 1). The JVM computes the same.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MEMBERSHIP = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")


class _Version(NamedTuple):
    """The files of a version of control groups: their names for memory, and the folders below ROOT for memory and processor time."""

    limit: str
    usage: str
    # In `memory.stat`: what the kernel can drop at once, which counts as used.
    cache: str
    memory: tuple[str, ...]
    cpu: tuple[str, ...]


V1 = _Version(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
    ("memory",),
    ("cpu", "cpu,cpuacct"),
)
# "unified" is where a machine with both versions has this one.
V2 = _Version("memory.max", "memory.current", "inactive_file", ("", "unified"), ("", "unified"))


def cores() -> int:
    """Return the number of cores, at least one; a share of a core counts as a whole one."""
    found: list[float] = [os.cpu_count() or 1]
    if hasattr(os, "sched_getaffinity"):
        found.append(len(os.sched_getaffinity(0)))
    for version in (V1, V2):
        found += filter(None, map(_quota, _folders(version.cpu)))
    return max(1, math.ceil(min(found)))


def memory_bytes() -> int:
    """Return the size of the memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *(limit for limit, _ in _limits(total))])


def available_bytes() -> int:
    """Return the memory that new processes can use without swapping."""
    import psutil  # noqa: PLC0415 - the stream's environment and an unprepared machine have none, and need only the rest

    found = psutil.virtual_memory()
    return max(0, min([found.available, *(limit - used for limit, used in _limits(found.total))]))


def _limits(total: int) -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group that has less memory than the machine."""
    for version in (V1, V2):
        for folder in _folders(version.memory):
            limit, used = _number(folder / version.limit), _number(folder / version.usage)
            # Version 1 says that there is no limit with a number beyond any memory.
            if limit is not None and limit < total and used is not None:
                yield limit, used - _cache(folder, version)


def _folders(controllers: tuple[str, ...]) -> Iterator[Path]:
    """Yield the folders of this process's control group and of those around it, as far as they can be seen.

    A container may see its own group as the root, whatever name the host has for it.
    """
    try:
        lines = MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for controller in controllers:
        listed = "" if controller in V2.memory else controller
        for line in lines:
            _, names, path = line.split(":", 2)
            if names == listed:
                inner = Path(path.lstrip("/"))
                for part in (inner, *inner.parents):
                    yield ROOT / controller / part


def _quota(folder: Path) -> float | None:
    """Return how many cores a control group may use at the same time; None for no limit."""
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    words = _text(folder / "cpu.max").split()
    if words and words[0].isdecimal():
        quota, period = int(words[0]), int(words[1])
    return quota / period if quota is not None and period else None


def _cache(folder: Path, version: _Version) -> int:
    for line in _text(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == version.cache:
            return int(value)
    return 0


def _number(file: Path) -> int | None:
    """Return the number in a file; None if there is none: for `max`, for -1, and for a file that does not exist."""
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
