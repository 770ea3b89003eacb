"""A deadline for answers that their client does not take, which the HTTP server does not have: the kernel ends such connections."""

import socket
import threading
import time

from query_api.http.limits.own_sockets import listening_sockets

# The server listens some milliseconds after it has loaded the application.
RETRY_S = 0.05
START_TIMEOUT_S = 30.0


def limit_unread_answers(timeout_s: float) -> None:
    """Have the kernel reset connections whose client takes nothing of what was sent for `timeout_s` seconds.

    Accepted connections inherit the option from the listening socket, which does not exist yet while the application is loaded: a
    thread waits for it. Where the system lacks the option, nothing is limited.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        threading.Thread(
            target=_run, args=(int(timeout_s * 1000),), name="write deadline", daemon=True
        ).start()


def _run(timeout_ms: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    is_set = False
    while not is_set and time.monotonic() < deadline:
        time.sleep(RETRY_S)
        for listening in listening_sockets():
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)
            is_set = True
