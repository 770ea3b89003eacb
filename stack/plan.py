"""What `./foldlake up` would do: which processes it would start, replace, stop or keep, and which changes are the reason."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil

from include.settings import Settings, folding_environment, written_settings
from include.stream import driver_configuration
from stack import lifecycle
from stack.components import airflow, stream
from stack.launchers import stream_driver
from stack.supervision.configuration import (
    SecretsFile,
    declarations_digest,
    describe,
    held_files,
    secrets_path,
)
from stack.supervision.exec_process import DESCRIPTION
from stack.supervision.process import Process
from stack.supervision.supervisor import Supervisor

STREAM_DRIVER = "stream-driver"
AIRFLOW_TASKS = "airflow-tasks"
DECLARATIONS, CODE, COMMAND = "declarations", "code", "command"
START, REPLACE, STOP, KEEP = "start", "replace", "stop", "keep"
# What reads its settings when it starts.
NEXT_START = "later"


@dataclass(frozen=True)
class PlannedProcess:
    """A process and what would become of it; `reasons`: settings by variable, `declarations`, `code` or `command`."""

    name: str
    action: str
    reasons: tuple[str, ...] = ()


def plan(settings: Settings, only: Collection[str] = ()) -> list[PlannedProcess]:
    """Return the processes, and the stream driver, in the order in which they would be started or replaced.

    only: names of components; empty for all of them.
    """
    pids = {name: state.pid for name, state in Supervisor(settings).states().items()}
    secrets_file = SecretsFile(secrets_path(settings.home))
    processes = lifecycle.all_processes(settings)
    defined = {process.name for process in processes}
    ordered = [(0, PlannedProcess(name, STOP)) for name, pid in pids.items() if pid and name not in defined]
    chosen = {
        process.name
        for name, module in lifecycle.component_modules().items()
        if name in (only or lifecycle.COMPONENTS)
        for process in module.processes(settings)
    }
    for process in processes:
        if process.name in chosen:
            planned = _planned(settings, process, pids.get(process.name), secrets_file)
            ordered.append((process.start_order, planned))
            if process.name == stream.STREAM_SUPERVISOR:
                ordered += _driver(settings, planned)
    if any(process.name in chosen and pids.get(process.name) for process in airflow.processes(settings)):
        ordered += [(airflow.UPDATE_ORDER, tasks) for tasks in _tasks(settings)]
    return [planned for _, planned in sorted(ordered, key=itemgetter(0))]


def _planned(
    settings: Settings, process: Process, pid: int | None, secrets_file: SecretsFile
) -> PlannedProcess:
    if pid is None:
        return PlannedProcess(process.name, START)
    before = _description_of(pid) if process.held is None else _held_description(settings.home, process.name)
    reasons = _differences(before, describe(settings, process, secrets_file))
    return PlannedProcess(process.name, REPLACE if reasons else KEEP, reasons)


def _description_of(pid: int) -> Mapping[str, Any]:
    """Return the description with which a process runs; empty if an earlier release has started it."""
    try:
        return _read(Path(psutil.Process(pid).environ()[DESCRIPTION]))
    except (psutil.Error, KeyError):
        return {}


def _held_description(home: Path, name: str) -> Mapping[str, Any]:
    """Return the description of the server whose sockets a process holds."""
    return _read(held_files(home, name).present)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        described: Mapping[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return described


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for part in ("environment", "secrets"):
        found += _changed(before.get(part, {}), after[part])
    return tuple(found) + tuple(
        part for part in (DECLARATIONS, CODE, COMMAND) if before.get(part) != after.get(part)
    )


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _tasks(settings: Settings) -> list[PlannedProcess]:
    """Return Airflow's tasks, if the next ones would have other settings."""
    written = airflow.settings_file(settings.home)
    before = written_settings(written) if written.exists() else {}
    reasons = tuple(_changed(before, airflow.task_settings(settings)))
    return [PlannedProcess(AIRFLOW_TASKS, NEXT_START, reasons)] if reasons else []


def _driver(settings: Settings, supervisor: PlannedProcess) -> list[tuple[int, PlannedProcess]]:
    """Return the running stream driver with its order; Airflow requests one that does not run. A new supervisor comes with a new driver."""
    present = driver_configuration.read(settings.home)
    if present is None or stream_driver.running(settings.home) is None:
        return []
    reasons = tuple(_changed(present.environment, folding_environment(settings)))
    if present.declarations != declarations_digest(settings.declaration_folders):
        reasons += (DECLARATIONS,)
    is_released = supervisor.action == REPLACE
    order = stream.START_ORDER if is_released else stream.UPDATE_ORDER
    action = REPLACE if reasons or is_released else KEEP
    return [(order, PlannedProcess(STREAM_DRIVER, action, reasons + supervisor.reasons))]
