"""Checks that the ports of the embedded stack are free. Standard library only."""

import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stack.doctor.finding import Finding, State

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class NeededPort:
    """A port, the setting that changes it, and the process that listens on it."""

    number: int
    setting: str
    process: str


def check_ports(needed: Sequence[NeededPort], holder: Callable[[int], str]) -> Iterator[Finding]:
    """Yield a finding for each port that is taken or needed twice; one for all of them if there is none.

    needed: the ports of processes that are not running. holder: returns a description of the process that listens on a port.
    """
    has_problem = False
    by_number: dict[int, NeededPort] = {}
    for port in needed:
        other = by_number.setdefault(port.number, port)
        problem = _double(port, other) if other is not port else _taken(port, holder)
        if problem is not None:
            has_problem = True
            yield problem
    if not has_problem:
        numbers = ", ".join(str(number) for number in sorted(by_number))
        yield Finding("ports", State.OK, f"free: {numbers}" if numbers else "none needed")


def _double(port: NeededPort, other: NeededPort) -> Finding:
    found = f"needed by {other.process} and by {port.process}"
    if port.setting == other.setting:
        action = f"Give {port.setting} different ports."
    else:
        action = f"Set {other.setting} or {port.setting} to another port."
    return Finding(f"port {port.number}", State.PROBLEM, found, action=action)


def _taken(port: NeededPort, holder: Callable[[int], str]) -> Finding | None:
    check, needed = f"port {port.number}", f"free for {port.process}"
    try:
        failure = _bind_error(port.number)
    except OverflowError:
        action = f"Set {port.setting} to a number between 1024 and 65535."
        return Finding(check, State.PROBLEM, "not a port", needed, action)
    if failure == errno.EADDRINUSE:
        action = f"Stop that process, or set {port.setting} to a free port."
        return Finding(check, State.PROBLEM, f"in use by {holder(port.number)}", needed, action)
    if failure:
        action = f"Set {port.setting} to a free port above 1023."
        return Finding(check, State.PROBLEM, f"cannot be opened: {errno.errorcode[failure]}", needed, action)
    return None


def _bind_error(port: int) -> int:
    """Return the error number of an attempt to listen on a port; 0 for none."""
    with socket.socket() as probe:
        # As servers do: connections that ended a moment ago do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            return error.errno or errno.EIO
    return 0
