"""Starts and stops the embedded stack as a whole."""

import importlib
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import ModuleType

from include.errors import FoldlakeError
from include.files import FileLockedError, file_lock, private_umask
from include.settings import Settings
from stack.readiness import Listener, Progress, wait_until_ready
from stack.server_replacement import replace_held
from stack.supervision.process import Process, check_ports
from stack.supervision.stray_processes import end_stray_processes
from stack.supervision.supervisor import Changes, Supervisor, remove_run_files

# Each name is a module of stack/components with the functions `prepare(settings)` and `processes(settings)`, and
# optionally `check(settings)`, which raises before anything is started, `after_start(settings)` and `before_stop(settings)`, and
# `update(settings, listener)`, which is called before processes with a higher start order than UPDATE_ORDER are started or replaced, unless
# a process of the component is replaced by one that gets ready beside it.
# The value is the settings variable for an external server; if it is set, the embedded server is not started.
COMPONENTS = {
    "kafka": "kafka_bootstrap",
    "registry": "schema_registry_url",
    "redis": "redis_url",
    "query_nodes": "",
    "airflow": "airflow_url",
    "stream": "airflow_url",
}


class BusyError(FoldlakeError):
    """Another process is starting or stopping the same home's stack."""


def start(settings: Settings, only: Sequence[str] = (), listener: Listener = lambda _: None) -> None:
    """Start the stack, or only these components, and return when every process is ready.

    Running processes are kept, unless their definition has changed: these are replaced in start order, those of one unit at a time.

    Args:
        settings: the settings of the stack.
        only: names from COMPONENTS; empty for all of them.
        listener: called with every step.

    Raises:
        SettingsError: a component cannot run with these settings.
        PortTakenError: another process listens on a port.
        StartError: a process did not become ready in time. A server whose sockets are held is still the one before.
        BusyError: another process is starting or stopping this stack.
        HandoverError: a stream driver with the changed settings or declarations has failed; the present one stays.
    """
    with private_umask(), _home_lock(settings.home):
        supervisor = Supervisor(settings)
        if supervisor.pid() is None:
            # Processes left over from a killed start or a killed supervisor would occupy ports and locks.
            end_stray_processes(settings.home)
        components = _components(settings)
        selected = {name: module for name, module in components.items() if not only or name in only}
        wanted = [process for module in selected.values() for process in module.processes(settings)]
        known = [process for module in components.values() for process in module.processes(settings)]
        # Checked before anything is started, so that a port in use or a wrong setting does not leave a partly started stack.
        running = {name for name, state in supervisor.states().items() if state.is_running}
        check_ports(process for process in wanted if process.name not in running)
        for module in selected.values():
            _call_hook(module, "check", settings)
        changes = supervisor.ensure_running(known)
        changed = changes.changed & {process.name for process in wanted}
        changes = replace(changes, changed=changed)
        if changed or changes.removed:
            _before_stop(settings, running & (changed | changes.removed))
        for name in changes.removed:
            supervisor.remove(name)
        with ThreadPoolExecutor(len(COMPONENTS)) as pool:
            prepared = {
                name: pool.submit(_prepare, name, module, settings, listener)
                for name, module in selected.items()
            }
            _start_in_order(settings, supervisor, selected, prepared, changes, listener)
        for module in selected.values():
            _call_hook(module, "after_start", settings)


def stop(settings: Settings, listener: Listener = lambda _: None) -> int:
    """Stop all processes of this home in reverse order, including those left over from an interrupted start.

    Returns the number of processes that had to be ended without the supervisor.
    """
    with _home_lock(settings.home):
        supervisor = Supervisor(settings)
        try:
            if supervisor.pid() is not None:
                _stop_in_order(settings, supervisor, listener)
        finally:
            # Also after a failure above, so that no process is left running.
            ended = end_stray_processes(settings.home)
            remove_run_files(settings.home)
        return ended


def is_up(settings: Settings) -> bool:
    """Whether this home's supervisor is running."""
    return Supervisor(settings).pid() is not None


def all_processes(settings: Settings) -> list[Process]:
    """Return every process that these settings define, in start order."""
    processes = [
        process for module in _components(settings).values() for process in module.processes(settings)
    ]
    return sorted(processes, key=lambda process: process.start_order)


def component_modules() -> dict[str, ModuleType]:
    """Return component name -> module."""
    return {name: importlib.import_module(f"stack.components.{name}") for name in COMPONENTS}


def _components(settings: Settings) -> dict[str, ModuleType]:
    """Return the components that the embedded stack runs: those without an external server in the settings."""
    values = settings.by_variable()
    return {
        name: module
        for name, module in component_modules().items()
        if not (COMPONENTS[name] and values[COMPONENTS[name]])
    }


def _prepare(name: str, module: ModuleType, settings: Settings, listener: Listener) -> None:
    began = time.monotonic()
    listener(Progress(name, "preparing", 0))
    module.prepare(settings)
    listener(Progress(name, "prepared", time.monotonic() - began))


def _start_in_order(
    settings: Settings,
    supervisor: Supervisor,
    components: dict[str, ModuleType],
    prepared: dict[str, Future[None]],
    changes: Changes,
    listener: Listener,
) -> None:
    """Start the processes in start order, each as soon as its component is prepared, and replace the changed ones."""
    owned = [(process, name) for name, module in components.items() for process in module.processes(settings)]
    owned.sort(key=lambda pair: pair[0].start_order)
    changed = changes.changed | changes.outdated.keys()
    replaced = {name for process, name in owned if process.name in changes.outdated}
    updates = {
        name: module
        for name, module in components.items()
        if hasattr(module, "update") and name not in replaced
    }
    for start_order, group in groupby(owned, key=lambda pair: pair[0].start_order):
        for name in [name for name, module in updates.items() if start_order > module.UPDATE_ORDER]:
            prepared[name].result()
            updates.pop(name).update(settings, listener)
        order = list(group)
        for process, owner in order:
            prepared[owner].result()
            if process.name not in changed:
                supervisor.start(process.name)
        kept = [process for process, _ in order if process.name not in changed]
        wait_until_ready(settings.home, supervisor, kept, listener)
        outdated = (process for process, _ in order if process.name in changed)
        for _, unit in groupby(outdated, key=lambda process: process.unit):
            _replace(settings, supervisor, list(unit), changes.outdated, listener)


def _replace(
    settings: Settings,
    supervisor: Supervisor,
    unit: list[Process],
    outdated: Mapping[str, Path],
    listener: Listener,
) -> None:
    """Replace servers whose sockets are held; then stop and start the other processes, and wait until all serve that have served."""
    ready = [
        replace(process, is_ready=process.is_serving)
        if process.is_serving is not None and process.is_serving()
        else process
        for process in unit
    ]
    for process in unit:
        if process.name in outdated:
            replace_held(settings.home, supervisor, process, outdated[process.name], listener)
    stopped = [process for process in unit if process.name not in outdated]
    supervisor.replace(stopped)
    for process in stopped:
        supervisor.start(process.name)
    wait_until_ready(settings.home, supervisor, ready, listener)


def _stop_in_order(settings: Settings, supervisor: Supervisor, listener: Listener) -> None:
    _before_stop(settings, {name for name, state in supervisor.states().items() if state.is_running})
    backwards = sorted(all_processes(settings), key=lambda process: -process.start_order)
    for _, group in groupby(backwards, key=lambda process: process.start_order):
        running = supervisor.states()
        order = [process for process in group if process.name in running and running[process.name].is_running]
        began = time.monotonic()
        for process in order:
            listener(Progress(process.name, "stopping", 0))
        supervisor.stop(order)
        for process in order:
            listener(Progress(process.name, "stopped", time.monotonic() - began))
    supervisor.shut_down()


def _before_stop(settings: Settings, names: AbstractSet[str]) -> None:
    """Call the `before_stop` hook of the components to which these running processes belong."""
    for module in reversed(_components(settings).values()):
        if any(process.name in names for process in module.processes(settings)):
            # A failing hook must not prevent the stop.
            with suppress(Exception):
                _call_hook(module, "before_stop", settings)


def _call_hook(module: ModuleType, hook: str, settings: Settings) -> None:
    function = getattr(module, hook, None)
    if function is not None:
        function(settings)


def _home_lock(home: Path) -> AbstractContextManager[None]:
    """Return the lock that prevents concurrent starts and stops of the same home."""

    def busy(locked: FileLockedError) -> BusyError:
        return BusyError(
            f"Process {locked.holder or 'unknown'} is starting or stopping the stack in {home}. "
            "Hint: wait until it has finished, or interrupt it, then try again."
        )

    return file_lock(home / "run" / "lock", error=busy)
