"""`./foldlake doctor` on a machine on which nothing is installed yet: `python -m stack.doctor.unprepared`. Standard library only.

`prepared` repeats its checks of the machine and of the downloads.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from stack.doctor.finding import Finding, State, report
from stack.doctor.folder_checks import check_folder
from stack.doctor.machine_checks import (
    NeededPort,
    check_home_disk,
    check_java,
    check_memory,
    check_ports,
    check_python,
    check_tools_disk,
)
from stack.doctor.registry_checks import Clock, check_registries, pip_of
from stack.provisioning.launcher import setting, tools_directory
from stack.provisioning.layout import CHECKOUT, DOWNLOADED, Layout

# The list of all settings with their defaults; a test compares it with include/settings.
DEFAULTS = CHECKOUT / ".env.example"
# Setting of a port -> the process that listens on it, and the setting of an external server with which the port is not needed.
PORTS = {
    "FOLDLAKE_KAFKA_PORT": ("kafka", "FOLDLAKE_KAFKA_BOOTSTRAP"),
    "FOLDLAKE_KAFKA_CONTROLLER_PORT": ("kafka", "FOLDLAKE_KAFKA_BOOTSTRAP"),
    "FOLDLAKE_REGISTRY_PORT": ("registry", "FOLDLAKE_SCHEMA_REGISTRY_URL"),
    "FOLDLAKE_QUERY_PORTS": ("a query node", ""),
    "FOLDLAKE_AIRFLOW_PORT": ("airflow-api-server", "FOLDLAKE_AIRFLOW_URL"),
}
HOLDER = "another process"


def main(arguments: list[str] | None = None) -> int:
    """Print the report, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="./foldlake doctor",
        description="Check this machine before the first start. The tools are not prepared yet.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, for programs")
    options = parser.parse_args(arguments)
    return report(findings(), is_json=options.json, output=sys.stdout)


def findings() -> Iterator[Finding]:
    """Yield the findings of all checks, with the settings in the environment and in `.env`."""
    home = Path(_value("FOLDLAKE_HOME") or CHECKOUT / ".foldlake").expanduser().absolute()
    layout = Layout(tools_directory(dict(os.environ)))
    has_own_servers = any(_value(external) for _, external in PORTS.values() if external)
    yield from check_machine(layout, home, has_whole_stack=not has_own_servers)
    yield from _check_ports(home)
    yield from check_downloads(layout, _value("FOLDLAKE_MAVEN_MIRROR"))
    if has_own_servers:
        found = "`./foldlake doctor` checks them when `./foldlake prepare` has installed their clients"
        yield Finding("your own servers", State.SKIPPED, found)


def needed_ports(value: Callable[[str], str]) -> Iterator[NeededPort]:
    """Yield the ports of the embedded stack; raises ValueError for a setting that is no number."""
    for variable, (process, external) in PORTS.items():
        if not (external and value(external)):
            for number in filter(str.strip, value(variable).split(",")):
                yield NeededPort(int(number), variable, process)


def _check_ports(home: Path) -> Iterator[Finding]:
    if (pid := _supervisor(home)) is not None:
        yield Finding("ports", State.OK, f"in use by the stack of {home} (pid {pid})")
        return
    try:
        needed = list(needed_ports(_value))
    except ValueError as error:
        action = f"Correct {', '.join(PORTS)}: each is a number; the nodes' are separated by commas."
        yield Finding("ports", State.PROBLEM, f"a port is no number: {error}", action=action)
        return
    yield from check_ports(needed, lambda _port: HOLDER)


def _supervisor(home: Path) -> int | None:
    """Return the process id of a running stack's supervisor; None if there is none."""
    with suppress(OSError, ValueError):
        pid = int((home / "run" / "supervisord.pid").read_text(encoding="utf-8"))
        os.kill(pid, 0)
        command = Path(f"/proc/{pid}/cmdline")
        # Another process may have got the id of a supervisor that was killed.
        if not command.exists() or b"supervisord" in command.read_bytes():
            return pid
    return None


def _value(name: str) -> str:
    return setting(name, dict(os.environ)) or setting(name, {}, DEFAULTS)


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


if __name__ == "__main__":
    sys.exit(main())
