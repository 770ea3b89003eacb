"""Starting and stopping the embedded stack as a whole."""

import fcntl
import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from types import ModuleType

from include.errors import FoldlakeError
from include.settings import Settings
from stack.supervision.ports import check_ports
from stack.supervision.process import Process
from stack.supervision.stray_processes import end_leftovers
from stack.supervision.supervisor import Supervisor, remove_run_files

# Each is a module of stack/components with `prepare(settings)` and `processes(settings)`; optional are `after_start` and
# `before_stop`, with the settings too. The second value is the variable of the setting that points at a server of the user's own.
COMPONENTS = {
    "kafka": "kafka_bootstrap",
    "registry": "schema_registry_url",
    "query_nodes": "",
    "airflow": "airflow_url",
}
POLL_INTERVAL_S = 0.2
LOG_TAIL_LINES = 30
# A process that ends this often while it is waited for will not come up.
HOPELESS_STARTS = 4


class StartError(FoldlakeError):
    """A process did not become ready; the message ends with what it wrote last."""


class BusyError(FoldlakeError):
    """Another `up` or `down` is at work on the same home."""


@dataclass(frozen=True)
class Progress:
    """One step of a start or a stop: `state` is preparing, starting, ready, stopping or stopped."""

    name: str
    state: str
    elapsed_s: float


Listener = Callable[[Progress], None]


def start(settings: Settings, only: Sequence[str] = (), listener: Listener = lambda _: None) -> None:
    """Bring up the stack, or only these components; quick where all of it is up. Returns once everything is ready.

    Args:
        settings: ports, directories and all else.
        only: names out of COMPONENTS; none means all.
        listener: told of every step.

    Raises:
        PortTakenError: somebody else listens on a port.
        StartError: a process did not become ready in time.
        BusyError: another start or stop is at work.
    """
    with _only_one(settings):
        supervisor = Supervisor(settings)
        if supervisor.pid() is None:
            # A start that was killed, or a supervisor that was: what they left would hold ports and locks.
            end_leftovers(settings.home)
        components = _components(settings)
        selected = {name: module for name, module in components.items() if not only or name in only}
        wanted = [process for module in selected.values() for process in module.processes(settings)]
        known = [process for module in components.values() for process in module.processes(settings)]
        # Before anything is started: a port that is taken leaves nothing behind.
        running = {name for name, state in supervisor.states().items() if state.is_running}
        check_ports(process for process in wanted if process.name not in running)
        supervisor.ensure_running(known, lambda names: _before_stop(settings, running.intersection(names)))
        with ThreadPoolExecutor(len(COMPONENTS)) as pool:
            prepared = {
                name: pool.submit(_prepare, name, module, settings, listener)
                for name, module in selected.items()
            }
            _start_in_order(settings, supervisor, selected, prepared, listener)
        for module in selected.values():
            _call_hook(module, "after_start", settings)


def stop(settings: Settings, listener: Listener = lambda _: None) -> int:
    """Stop everything of this home, in reverse order, also what an interrupted start left.

    Returns how many processes had to be ended outside of the supervisor.
    """
    with _only_one(settings):
        supervisor = Supervisor(settings)
        try:
            if supervisor.pid() is not None:
                _stop_in_order(settings, supervisor, listener)
        finally:
            # Whatever went wrong above, nothing stays.
            leftovers = end_leftovers(settings.home)
            remove_run_files(settings)
        return leftovers


def is_up(settings: Settings) -> bool:
    """Whether this home's supervisor runs."""
    return Supervisor(settings).pid() is not None


def all_processes(settings: Settings) -> list[Process]:
    """Return every process that the settings ask for, in start order."""
    processes = [
        process for module in _components(settings).values() for process in module.processes(settings)
    ]
    return sorted(processes, key=lambda process: process.start_order)


def component_modules() -> dict[str, ModuleType]:
    """Return every component's module by name."""
    return {name: importlib.import_module(f"stack.components.{name}") for name in COMPONENTS}


def _components(settings: Settings) -> dict[str, ModuleType]:
    """Return the components that the embedded stack runs: not those that the settings point elsewhere for."""
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
    listener: Listener,
) -> None:
    """Start one order after the other, each component as soon as it is prepared."""
    owned = [(process, name) for name, module in components.items() for process in module.processes(settings)]
    owned.sort(key=lambda pair: pair[0].start_order)
    for _, group in groupby(owned, key=lambda pair: pair[0].start_order):
        order = list(group)
        for process, owner in order:
            prepared[owner].result()
            supervisor.start(process.name)
        _wait_until_ready(supervisor, [process for process, _ in order], listener)


def _wait_until_ready(supervisor: Supervisor, processes: list[Process], listener: Listener) -> None:
    began = time.monotonic()
    waiting = {process.name: process for process in processes}
    pids: dict[str, set[int]] = {name: set() for name in waiting}
    for name in waiting:
        listener(Progress(name, "starting", 0))
    while waiting:
        states = supervisor.states()
        for name, process in list(waiting.items()):
            elapsed_s = time.monotonic() - began
            state = states.get(name)
            if state and state.pid:
                pids[name].add(state.pid)
            if state and state.is_running and process.is_ready():
                listener(Progress(name, "ready", elapsed_s))
                del waiting[name]
            elif len(pids[name]) >= HOPELESS_STARTS or elapsed_s > process.ready_timeout_s:
                reason = (
                    f"ended {len(pids[name])} times"
                    if len(pids[name]) >= HOPELESS_STARTS
                    else f"was not ready after {elapsed_s:.0f} s"
                )
                message = (
                    f"{name} {reason}. The end of {supervisor.log_path(name)}:\n{log_tail(supervisor, name)}"
                )
                raise StartError(message)
        if waiting:
            time.sleep(POLL_INTERVAL_S)


def log_tail(supervisor: Supervisor, name: str, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines that a process wrote."""
    try:
        text = supervisor.log_path(name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(it wrote nothing)"
    return "\n".join(text.splitlines()[-lines:]) or "(it wrote nothing)"


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
    """Prepare the components of these processes, which run, for being stopped."""
    for module in reversed(_components(settings).values()):
        if any(process.name in names for process in module.processes(settings)):
            # A hook that fails must not keep anything alive.
            with suppress(Exception):
                _call_hook(module, "before_stop", settings)


def _call_hook(module: ModuleType, hook: str, settings: Settings) -> None:
    function = getattr(module, hook, None)
    if function is not None:
        function(settings)


@contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    """Hold the home's lock; the kernel releases it when the holder ends, however that happens."""
    path = settings.home / "run" / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            message = (
                f"pid {lock.read().strip() or 'unknown'} is starting or stopping the stack in {settings.home}. "
                "Wait until it has finished, or interrupt it, then try again."
            )
            raise BusyError(message) from error
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield
