"""Cores and memory are those of the container, whichever version of control groups limits it."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from include import machine

GIB = 1024**3
MACHINE_CORES = 16
MACHINE_GIB = 24
UNLIMITED_V1 = 9223372036854771712
V1_LINES = "4:memory:/docker/a\n2:cpu,cpuacct:/docker/a\n1:name=systemd:/docker/a\n"


@pytest.fixture(autouse=True)
def on_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory = SimpleNamespace(total=MACHINE_GIB * GIB, available=20 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": MACHINE_GIB * GIB // 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: MACHINE_CORES)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(MACHINE_CORES))
    monkeypatch.setattr(machine, "ROOT", tmp_path / "groups")
    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "membership")


def write(tmp_path: Path, membership: str, files: Mapping[str, object]) -> None:
    (tmp_path / "membership").write_text(membership)
    for name, content in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        pytest.param(
            "0::/\n",
            {
                "memory.max": 2 * GIB,
                "memory.current": GIB,
                "memory.stat": f"anon 5\ninactive_file {GIB // 2}",
                "cpu.max": "150000 100000",
            },
            id="version 2, in a container",
        ),
        pytest.param(
            "0::/foldlake.slice/keeper\n",
            {
                "foldlake.slice/memory.max": 2 * GIB,
                "foldlake.slice/memory.current": GIB // 2,
                "foldlake.slice/keeper/memory.max": "max",
                "foldlake.slice/keeper/memory.current": GIB // 2,
                "foldlake.slice/cpu.max": "200000 100000",
                "foldlake.slice/keeper/cpu.max": "max 100000",
            },
            id="version 2, the group around limits",
        ),
        pytest.param(
            V1_LINES,
            {
                "memory/memory.limit_in_bytes": 2 * GIB,
                "memory/memory.usage_in_bytes": GIB // 2,
                "cpu,cpuacct/cpu.cfs_quota_us": 200000,
                "cpu,cpuacct/cpu.cfs_period_us": 100000,
            },
            id="version 1, in a container",
        ),
        pytest.param(
            V1_LINES,
            {
                "memory/docker/a/memory.limit_in_bytes": 2 * GIB,
                "memory/docker/a/memory.usage_in_bytes": 3 * GIB,
                "memory/docker/a/memory.stat": f"cache 1\ntotal_inactive_file {5 * GIB // 2}",
                "memory/memory.limit_in_bytes": UNLIMITED_V1,
                "memory/memory.usage_in_bytes": 9 * GIB,
                "cpu,cpuacct/docker/a/cpu.cfs_quota_us": 110000,
                "cpu,cpuacct/docker/a/cpu.cfs_period_us": 100000,
            },
            id="version 1, on the host",
        ),
    ],
)
def test_limits_of_the_container_count(tmp_path: Path, membership: str, files: Mapping[str, object]) -> None:
    write(tmp_path, membership, files)

    assert machine.cores() == 2
    assert machine.memory_bytes() == 2 * GIB
    assert machine.available_bytes() == 3 * GIB // 2


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("0::/\n", {"memory.max": "max", "memory.current": GIB, "cpu.max": "max 100000"}),
        (
            V1_LINES,
            {
                "memory/memory.limit_in_bytes": UNLIMITED_V1,
                "memory/memory.usage_in_bytes": GIB,
                "cpu,cpuacct/cpu.cfs_quota_us": -1,
                "cpu,cpuacct/cpu.cfs_period_us": 100000,
            },
        ),
        ("", {}),
    ],
    ids=["version 2", "version 1", "no control groups"],
)
def test_without_limits_those_of_the_machine_count(
    tmp_path: Path, membership: str, files: Mapping[str, object]
) -> None:
    write(tmp_path, membership, files)

    assert machine.cores() == MACHINE_CORES
    assert machine.memory_bytes() == MACHINE_GIB * GIB
    assert machine.available_bytes() == 20 * GIB


def test_a_system_without_control_groups_has_its_own_figures() -> None:
    assert (machine.cores(), machine.memory_bytes()) == (MACHINE_CORES, MACHINE_GIB * GIB)


def test_a_part_of_a_core_is_one(tmp_path: Path) -> None:
    write(tmp_path, "0::/\n", {"cpu.max": "20000 100000"})
    assert machine.cores() == 1


def test_cores_that_the_process_is_bound_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5, 7})
    assert machine.cores() == 3


def test_a_full_container_has_no_memory_left(tmp_path: Path) -> None:
    write(tmp_path, "0::/\n", {"memory.max": GIB, "memory.current": GIB + 4096})
    assert machine.available_bytes() == 0
