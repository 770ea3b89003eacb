"""A deadline for the whole body of a request, which the HTTP server does not have: it waits for as long as bytes may come.

The server reads a body without a timeout, and does not tell the application which connection a request came on. While a body is
being read, a thread therefore looks at the kernel's counters of the connections from the same address. One that has been unanswered
for the whole deadline gets the end of its input: the reading ends, and the request is answered.
"""

import logging
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from query_api.http.limits.connections import TcpInfo, connections_of

# Most bodies arrive with their headers, so that no connection is looked at for them.
SAMPLE_S = 0.5
# The kernel's clock: within this time, it is not known whether bytes were sent or received last.
CLOCK_MS = 10

log = logging.getLogger(__name__)


class BodyTimeoutError(Exception):
    """A body was not complete within the deadline."""


class ByteStream(Protocol):
    """A request's body."""

    def read(self, size: int, /) -> bytes:
        """Return as many bytes, or those before the end of the body."""


@dataclass(eq=False)
class _Reading:
    client: str
    began: float
    is_overdue: bool = False


@dataclass(frozen=True)
class _Unanswered:
    """A connection whose client has sent something and waits for an answer, or has just got one (is_certain False)."""

    since: float
    info: TcpInfo
    is_certain: bool

    def next(self, info: TcpInfo, now: float) -> "_Unanswered":
        """Return the state after a later observation."""
        if info.bytes_sent != self.info.bytes_sent:
            return _unanswered(info, now)
        if not self.is_certain and info.bytes_received != self.info.bytes_received:
            return replace(self, since=now, info=info, is_certain=True)
        return self


def _unanswered(info: TcpInfo, now: float) -> _Unanswered:
    return _Unanswered(now, info, info.last_data_recv < info.last_data_sent - CLOCK_MS)


class BodyDeadline:
    """The reading of bodies in one worker process. Thread-safe."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._readings: set[_Reading] = set()
        self._lock = threading.Lock()
        self._is_reading = threading.Event()
        self._watch: threading.Thread | None = None

    def read(self, stream: ByteStream, length: int, client: str) -> bytes:
        """Return a body of this length from the client at this address, or less if the client disconnects.

        Raises BodyTimeoutError.
        """
        reading = _Reading(client, time.monotonic())
        with self._lock:
            self._readings.add(reading)
            self._is_reading.set()
            if self._watch is None:
                self._watch = threading.Thread(target=self._run, name="body deadline", daemon=True)
                self._watch.start()
        try:
            body = stream.read(length)
        finally:
            with self._lock:
                self._readings.discard(reading)
                if not self._readings:
                    self._is_reading.clear()
        if len(body) < length and reading.is_overdue:
            raise BodyTimeoutError
        return body

    def _run(self) -> None:
        seen: dict[tuple[str, int], _Unanswered] = {}
        while True:
            self._is_reading.wait()
            time.sleep(SAMPLE_S)
            now = time.monotonic()
            with self._lock:
                slow = [reading for reading in self._readings if now - reading.began >= SAMPLE_S]
            try:
                seen = self._sample(slow, seen, now) if slow else {}
            except Exception:
                log.exception("cannot look at the connections of slow clients; trying again")

    def _sample(
        self, slow: list[_Reading], before: dict[tuple[str, int], _Unanswered], now: float
    ) -> dict[tuple[str, int], _Unanswered]:
        """Look at the connections of the clients whose bodies are slow, and end the input of those that are overdue."""
        seen: dict[tuple[str, int], _Unanswered] = {}
        overdue = {reading.client for reading in slow if now - reading.began >= self.timeout_s}
        # A connection is first seen up to a sample after its body began, so it counts a sample earlier.
        begun_before = now - self.timeout_s + SAMPLE_S
        for reading in slow:
            reading.is_overdue |= reading.client in overdue and reading.began <= begun_before
        for connection, client in connections_of({reading.client for reading in slow}):
            with suppress(OSError):
                info = TcpInfo.of(connection)
                if info.last_data_sent < info.last_data_recv - CLOCK_MS:
                    continue  # answered
                earlier = before.get(client)
                one = seen[client] = earlier.next(info, now) if earlier else _unanswered(info, now)
                if client[0] in overdue and one.since <= begun_before:
                    connection.shutdown(socket.SHUT_RD)
        return seen
