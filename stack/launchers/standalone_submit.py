"""Runs a standalone stream driver as a child of this process, with the JVM and its cache as the stack's driver has them.

This process passes stop requests on to the driver's Python process, which stops the queries: the JVM would end at once.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

import psutil

from include.errors import FoldlakeError
from include.process import die_with_parent
from include.scratch import scratch_dir
from include.settings import CHECKOUT
from include.spark.stream_config import stream_config, stream_master
from include.stream.launch_failures import ENDED_BY_SIGNAL
from include.stream.standalone import parser, standalone_settings
from stack.launchers import stream_driver
from stack.launchers.early_python import start_python
from stack.launchers.spark_submit import stream_command, submit_environment
from stack.tools import Tools

APPLICATION = CHECKOUT / "spark_jobs" / "standalone_stream.py"
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def run(arguments: Sequence[str]) -> int:
    """Run the driver until it ends, or a stop is requested; return its exit status. Exits with the usage if the arguments are wrong."""
    parser().parse_args(arguments)
    parent_pid = os.getpid()
    # Before a client of Kafka has started its threads. No stop request is lost: the child has none of the handlers.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    launched_pid = os.fork()
    if launched_pid == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        _become_driver(arguments, parent_pid)

    def forward(_number: int, _frame: FrameType | None) -> None:
        with suppress(psutil.NoSuchProcess):
            launched = psutil.Process(launched_pid)
            driver = stream_driver.Driver(launched_pid, parent_pid, stream_driver.started_s(launched), "")
            (driver.python() or launched).send_signal(signal.SIGTERM)

    for number in STOP_SIGNALS:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    status = os.waitstatus_to_exitcode(os.waitpid(launched_pid, 0)[1])
    return status if status >= 0 else ENDED_BY_SIGNAL - status


def _become_driver(arguments: Sequence[str], parent_pid: int) -> None:
    """Become the driver's JVM, or print the reason for a failure and exit."""
    try:
        # Ctrl-C reaches the parent only.
        os.setsid()
        die_with_parent(parent_pid)
        command, environment = _command(arguments)
        os.execve(command[0], command, environment)  # noqa: S606
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
    except BaseException:  # noqa: BLE001 - a fork must not go on with what its parent does
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def _command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of the driver, whose Python process is started."""
    given = parser().parse_args(arguments)
    settings = standalone_settings(given)
    tools = Tools(settings.tools)
    scratch = scratch_dir(given.state_dir.absolute() / "tmp")
    master = stream_master(settings)
    submitted = [
        *("--master", master),
        *(f"--conf={name}={value}" for name, value in stream_config(settings).items()),
        str(APPLICATION),
        *arguments,
    ]
    command = stream_command(tools, scratch, submitted)
    environment = submit_environment(tools.stream_python, scratch, os.environ, master)
    if master.startswith("local"):
        environment = start_python(tools.stream_python, submitted, scratch, environment)
    return command, environment
