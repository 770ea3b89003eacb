"""Replaces a held process: the new one gets ready beside it, and takes over. A server refuses no connection meanwhile."""

import secrets
from pathlib import Path

from include.waiting import wait_for
from stack.readiness import POLL_INTERVAL_S, Listener, Progress, StartError, log_tail
from stack.supervision import socket_holder
from stack.supervision.configuration import held_files, log_path
from stack.supervision.process import Process
from stack.supervision.supervisor import Supervisor

# Beyond the timeouts of the servers themselves.
SLACK_S = 30.0


def replace_held(
    home: Path, supervisor: Supervisor, process: Process, description: Path, listener: Listener
) -> None:
    """Replace the process by one with this description, and return when the present one has stopped.

    If the present one answers requests of users, the new one must do so before it takes over.

    Raises:
        StartError: the new process has failed, or was not ready in time; the present one stays.
    """
    assert process.held is not None  # noqa: S101 - it is replaced
    listener(Progress(process.name, "getting ready", 0))
    process.held.before(description)
    stop_timeout_s = process.stop_timeout_s + process.held.takeover_s
    held, holder = held_files(home, process.name), _pid(supervisor, process)
    request = {
        "id": secrets.token_hex(8),
        "description": str(description),
        "must_serve": process.is_serving is not None and process.is_serving(),
        "ready_timeout_s": process.ready_timeout_s,
        "stop_timeout_s": stop_timeout_s,
    }
    socket_holder.write(held.request, request)

    def is_over() -> bool:
        return held.pending() is None or _pid(supervisor, process) != holder

    timeout_s = process.ready_timeout_s + stop_timeout_s + SLACK_S
    wait_for(is_over, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S)
    result = socket_holder.read(held.result)
    if result.get("id") != request["id"]:
        raise _failure(home, process, "there is no result")
    if result["error"]:
        raise _failure(home, process, result["error"])


def _pid(supervisor: Supervisor, process: Process) -> int | None:
    state = supervisor.states().get(process.name)
    return None if state is None else state.pid


def _failure(home: Path, process: Process, reason: str) -> StartError:
    log = log_path(home, process.name)
    return StartError(
        f"The new {process.name} does not replace the present one: {reason}. The end of {log}:\n{log_tail(log)}"
    )
