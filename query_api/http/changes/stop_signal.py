"""Tells a worker process that it is to stop. The HTTP server waits for open responses, and does not tell the application."""

import signal
import socket
import threading
from collections.abc import Callable

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def on_stop_signal(call: Callable[[], None]) -> None:
    """Have a thread call `call` when this process gets a stop signal. Only the main thread may use this.

    The server has its own handlers for these signals, so Python writes each signal's number to a socket instead.
    """
    receiving, sending = socket.socketpair()
    sending.settimeout(0)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(receiving, call), name="stop signal", daemon=True).start()


def _wait(receiving: socket.socket, call: Callable[[], None]) -> None:
    while numbers := receiving.recv(64):
        if STOP_SIGNALS & {signal.Signals(number) for number in numbers}:
            call()
            return
