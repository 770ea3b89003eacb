"""The checks that need nothing but Python, in the order of the report. Standard library only."""

from collections.abc import Iterator
from pathlib import Path

from stack.doctor.finding import Finding
from stack.doctor.folder_checks import check_folder
from stack.doctor.machine_checks import (
    check_home_disk,
    check_java,
    check_memory,
    check_python,
    check_tools_disk,
)
from stack.doctor.registry_checks import Clock, check_registries, pip_of
from stack.provisioning.layout import DOWNLOADED, Layout


def check_machine(
    layout: Layout, home: Path, *, has_whole_stack: bool, available_bytes: int | None = None
) -> Iterator[Finding]:
    """Check the machine and its disks. has_whole_stack, available_bytes: as for `check_memory`."""
    yield check_python()
    yield check_java()
    yield check_memory(available_bytes=available_bytes, has_whole_stack=has_whole_stack)
    yield check_tools_disk(layout)
    yield check_home_disk(home)
    yield check_folder("folder of the tools", "FOLDLAKE_TOOLS", layout.root, programs=True)
    yield check_folder("folder of the data", "FOLDLAKE_HOME", home, programs=False)


def check_downloads(layout: Layout, mirror: str) -> Iterator[Finding]:
    """Check the sources of `./foldlake prepare` and, with their replies, the clock. mirror: FOLDLAKE_MAVEN_MIRROR."""
    is_prepared = all(layout.is_ready(part) for part in DOWNLOADED)
    clock = Clock()
    with pip_of(layout) as (python, finding):
        yield finding
        if python is not None:
            yield from check_registries(python, mirror, clock, is_prepared=is_prepared)
    yield clock.check()
