"""The connections of a worker: how many it accepts, what the kernel counts of each, and how long a client may read nothing.

The HTTP server does not show its sockets to the application.
"""

import ctypes
import logging
import os
import resource
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
FAMILIES = {socket.AF_INET, socket.AF_INET6}
# The server listens some milliseconds after it has loaded the application.
RETRY_S = 0.05
START_TIMEOUT_S = 30.0


def _fields(c_type: type, names: str) -> list[tuple[str, type]]:
    return [(name, c_type) for name in names.split()]


class TcpInfo(ctypes.Structure):
    """`struct tcp_info` of Linux, as far as it is used. Times are milliseconds since then."""

    last_data_sent: int
    last_data_recv: int
    bytes_received: int
    bytes_sent: int
    _fields_ = (
        *_fields(ctypes.c_uint8, "state ca_state retransmits probes backoff options scales flags"),
        *_fields(ctypes.c_uint32, "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets"),
        *_fields(ctypes.c_uint32, "last_data_sent last_ack_sent last_data_recv last_ack_recv"),
        *_fields(ctypes.c_uint32, "pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering"),
        *_fields(ctypes.c_uint32, "rcv_rtt rcv_space total_retrans"),
        *_fields(ctypes.c_uint64, "pacing_rate max_pacing_rate bytes_acked bytes_received"),
        *_fields(ctypes.c_uint32, "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
        *_fields(ctypes.c_uint64, "delivery_rate busy_time rwnd_limited sndbuf_limited"),
        *_fields(ctypes.c_uint32, "delivered delivered_ce"),
        *_fields(ctypes.c_uint64, "bytes_sent"),
    )

    @classmethod
    def of(cls, connection: socket.socket) -> "TcpInfo":
        """Return the kernel's counters; raises OSError for a socket that is not connected."""
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, ctypes.sizeof(cls))
        if len(info) < ctypes.sizeof(cls):
            raise OSError("this kernel does not count the bytes of connections")
        return cls.from_buffer_copy(info)


def connections_of(clients: set[str]) -> Iterator[tuple[socket.socket, tuple[str, int]]]:
    """Yield the connections of clients at these addresses, each with the client's address and port."""
    for one in _own_sockets():
        with suppress(OSError):
            address, port = one.getpeername()[:2]
            if address in clients:
                yield one, (address, port)


def limit_unread_answers(timeout_s: float) -> None:
    """Have the kernel reset connections whose client takes nothing of what was sent for `timeout_s` seconds.

    Accepted connections inherit the option from the listening socket, which does not exist yet while the application is loaded: a
    thread waits for it. Where the system lacks the option, nothing is limited.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        threading.Thread(target=_limit_unread, args=(timeout_s,), name="write deadline", daemon=True).start()


def limit_unread_of(listening: socket.socket, timeout_s: float) -> None:
    """Do the same for the connections of a socket, which need not listen yet."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1000))


def _limit_unread(timeout_s: float) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    is_set = False
    while not is_set and time.monotonic() < deadline:
        time.sleep(RETRY_S)
        for one in _own_sockets():
            with suppress(OSError):
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    limit_unread_of(one, timeout_s)
                    is_set = True


def _own_sockets() -> Iterator[socket.socket]:
    """Yield a duplicate of each TCP socket of this process; it is closed after the iteration, the original stays open."""
    try:
        descriptors = [int(path.name) for path in DESCRIPTORS.iterdir()]
    except OSError:
        return  # not on Linux
    for descriptor in descriptors:
        try:
            # Sockets only: closing a duplicate of a file would release this process's locks on that file.
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            duplicate = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue  # closed in the meantime
        with duplicate:
            if duplicate.family in FAMILIES and duplicate.type == socket.SOCK_STREAM:
                yield duplicate


# Files that a worker has open besides its clients' connections: stores, connections to Kafka, to the registry and to other nodes.
RESERVED_FILES = 512
MIN_CONNECTIONS = 16

log = logging.getLogger(__name__)


def allowed_connections(wanted: int, handshakes: int = 0) -> int:
    """Raise this process's limit of open files as far as `wanted` connections need it and the system permits.

    handshakes: connections that the server does not count yet, because they have not proved to speak TLS. It ends them after 10 s.

    Returns the number of connections that a worker may have. Without that limit, a worker that cannot open another file would try to
    accept the same connection again and again. Workers inherit the limit of open files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + handshakes + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    allowed = max(MIN_CONNECTIONS, min(wanted, limit - RESERVED_FILES))
    if allowed < wanted:
        log.warning(
            "each worker accepts %d connections instead of %d (FOLDLAKE_NODE_HTTP_CONNECTIONS): the limit of open files is %d",
            allowed,
            wanted,
            limit,
        )
    return allowed
