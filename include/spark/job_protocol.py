"""How a launcher hands a lake job to the home's job server: a request over a Unix socket, with the launcher's output descriptors.

The server answers ACCEPTED or REFUSED, and at the job's end its exit status. A launcher that closes the connection earlier has ended.
"""

import json
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass

ACCEPTED = b"accepted\n"
# The server was started with other settings or code, or has a priority that is too low, and ends.
REFUSED = b"refused\n"
OUTPUTS = 2
CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True)
class JobRequest:
    """A job: its application's path and arguments, and what its Spark session depends on (see `launchers/job_client.py`).

    niceness: its nice value, relative to the other processes of the stack.
    """

    fingerprint: str
    application: str
    arguments: tuple[str, ...]
    niceness: int


def send_request(connection: socket.socket, request: JobRequest, outputs: Sequence[int]) -> None:
    """Send a request, with the descriptors of standard output and standard error."""
    socket.send_fds(connection, [json.dumps(asdict(request)).encode() + b"\n"], list(outputs))


def receive_request(connection: socket.socket) -> tuple[JobRequest, list[int]]:
    """Return a request and the descriptors that came with it, which the caller closes.

    Raises:
        OSError: the connection ended first.
    """
    text, outputs, _, _ = socket.recv_fds(connection, CHUNK_BYTES, OUTPUTS)
    while not text.endswith(b"\n"):
        more = connection.recv(CHUNK_BYTES)
        if not more:
            message = "the connection ended within the request"
            raise OSError(message)
        text += more
    fields = json.loads(text)
    return JobRequest(**{**fields, "arguments": tuple(fields["arguments"])}), outputs


def send_status(connection: socket.socket, status: int) -> None:
    """Send the exit status of a job."""
    connection.sendall(f"{status}\n".encode())


def receive_status(connection: socket.socket) -> int | None:
    """Return the exit status of a job when it ends; None if the server ended first."""
    text = receive_line(connection)
    return int(text) if text.endswith(b"\n") else None


def receive_line(connection: socket.socket) -> bytes:
    """Return what the server sends up to the end of a line, or of the connection."""
    text = b""
    while not text.endswith(b"\n"):
        try:
            more = connection.recv(1)
        except ConnectionError:
            return text
        if not more:
            return text
        text += more
    return text
