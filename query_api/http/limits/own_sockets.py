"""The TCP sockets of this process, which the HTTP server does not show to the application. Empty where there is no /proc."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
FAMILIES = {socket.AF_INET, socket.AF_INET6}
# struct tcp_info of Linux: the offsets of its fields, in bytes.
TCP_INFO_BYTES = 208
LAST_DATA_SENT, LAST_DATA_RECEIVED, BYTES_RECEIVED, BYTES_SENT = 44, 52, 128, 200


@dataclass(frozen=True)
class Traffic:
    """What was sent and received on a connection, and how long ago in milliseconds."""

    bytes_sent: int
    bytes_received: int
    last_sent_ms: int
    last_received_ms: int

    @classmethod
    def of(cls, connection: socket.socket) -> "Traffic":
        """Return the kernel's counters; raises OSError for a socket that is not connected."""
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        if len(info) < TCP_INFO_BYTES:
            raise OSError("this kernel does not count the bytes of connections")
        (sent_ms,) = struct.unpack_from("=I", info, LAST_DATA_SENT)
        (received_ms,) = struct.unpack_from("=I", info, LAST_DATA_RECEIVED)
        (received,) = struct.unpack_from("=Q", info, BYTES_RECEIVED)
        (sent,) = struct.unpack_from("=Q", info, BYTES_SENT)
        return cls(sent, received, sent_ms, received_ms)


def own_sockets() -> Iterator[socket.socket]:
    """Yield a duplicate of each TCP socket of this process; it is closed after the iteration, the original stays open."""
    for descriptor in _socket_descriptors():
        try:
            duplicate = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue  # closed in the meantime
        with duplicate:
            if duplicate.family in FAMILIES and duplicate.type == socket.SOCK_STREAM:
                yield duplicate


def connections_of(clients: set[str]) -> Iterator[tuple[socket.socket, tuple[str, int]]]:
    """Yield the connections of clients at these addresses, each with the client's address and port."""
    for one in own_sockets():
        with suppress(OSError):
            address, port = one.getpeername()[:2]
            if address in clients:
                yield one, (address, port)


def listening_sockets() -> Iterator[socket.socket]:
    """Yield the sockets at which this process accepts connections."""
    for one in own_sockets():
        with suppress(OSError):
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield one


def _socket_descriptors() -> Iterator[int]:
    """Yield the descriptors of sockets only: closing a duplicate of a file would release this process's locks on that file."""
    try:
        descriptors = list(DESCRIPTORS.iterdir())
    except OSError:
        return
    for path in descriptors:
        with suppress(OSError):
            if os.readlink(path).startswith("socket:"):  # noqa: PTH115 - Path.readlink costs three times as much
                yield int(path.name)
