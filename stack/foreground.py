"""Runs processes of the stack in the foreground, for containers: `python -m stack.foreground airflow-scheduler`.

The embedded stack defines the processes. A container can override Airflow's configuration with variables `AIRFLOW__…`.
"""

import argparse
import math
import os
import signal
import subprocess
import sys
from types import FrameType

from include.errors import FoldlakeError, SettingsError
from include.settings import CHECKOUT, Settings, setting_warnings, settings_environment
from include.waiting import wait_for
from stack.lifecycle import component_modules
from stack.supervision.process import Process
from stack.tools import ToolMissingError

POLL_INTERVAL_S = 0.5
OVERRIDABLE = "AIRFLOW__"


def main() -> int:
    """Prepare the components of the named processes, run the processes until one ends, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m stack.foreground", description=__doc__)
    parser.add_argument(
        "names", nargs="+", help="names of processes, or of components for all of their processes"
    )
    parser.add_argument(
        "--only-prepare", action="store_true", help="prepare the components, without running them"
    )
    arguments = parser.parse_args()
    settings = Settings()
    for warning in setting_warnings():
        sys.stderr.write(f"Warning: {warning}\n")
    wanted = select(settings, arguments.names)
    if arguments.only_prepare:
        return 0
    if len(wanted) == 1:
        os.execve(wanted[0].command[0], wanted[0].command, _environment(settings, wanted[0]))  # noqa: S606
    return _run_together(settings, wanted)


def select(settings: Settings, names: list[str]) -> list[Process]:
    """Prepare the components that these names belong to, and return the named processes.

    Raises:
        SettingsError: a name is neither a process nor a component.
    """
    chosen: list[Process] = []
    modules = component_modules()
    for name in names:
        for component, module in modules.items():
            try:
                processes = module.processes(settings)
            except ToolMissingError:
                # An image lacks the tools of the processes that it does not run.
                continue
            named = processes if name == component else [p for p in processes if p.name == name]
            if named:
                module.prepare(settings)
                chosen += named
                break
        else:
            raise SettingsError(
                f"No process or component is named {name!r}. Components: {', '.join(modules)}."
            )
    return chosen


def _environment(settings: Settings, process: Process) -> dict[str, str]:
    """Return the environment of a process.

    No other variable of the image overrides it: Airflow's image sets AIRFLOW_HOME, with which each container would have its own secrets.
    """
    return {
        **os.environ,
        **settings_environment(settings),
        "PYTHONPATH": str(CHECKOUT),
        **process.environment,
        **{name: value for name, value in os.environ.items() if name.startswith(OVERRIDABLE)},
    }


def _run_together(settings: Settings, processes: list[Process]) -> int:
    """Run several processes until one ends, then stop the others, so that the container restarts as a whole."""
    children = [
        subprocess.Popen(process.command, env=_environment(settings, process)) for process in processes
    ]

    def forward_signal(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, forward_signal)
    signal.signal(signal.SIGINT, forward_signal)
    wait_for(
        lambda: any(child.poll() is not None for child in children),
        timeout_s=math.inf,
        poll_s=POLL_INTERVAL_S,
    )
    first = next(child for child in children if child.returncode is not None)
    forward_signal(signal.SIGTERM, None)
    for child in children:
        child.wait()
    return int(first.returncode)


if __name__ == "__main__":
    try:
        status = main()
    except FoldlakeError as error:
        sys.exit(f"foldlake: {error}")
    raise SystemExit(status)
