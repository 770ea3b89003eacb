"""A limit on requests that occupy a thread for long, in total and for each client."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class NoFreeSlotError(Exception):
    """All slots are in use; the message says by whom and how many."""


class ClientSlots:
    """Slots of one worker process. Thread-safe.

    Each slot is a thread that waits. The total stays below the number of threads, so that lookups that do not wait, requests of other
    nodes and health checks always find one.
    """

    def __init__(self, total: int, client_share: float) -> None:
        """Create `total` slots, of which one client address gets at most `client_share`, and at least one."""
        self._total = total
        self._for_client = max(1, int(total * client_share))
        self._used: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def slot(self, client: str) -> Iterator[None]:
        """Use a slot for a request of this client address; raises NoFreeSlotError."""
        with self._lock:
            if self._used.total() >= self._total:
                raise NoFreeSlotError(f"{self._total} requests are in progress, which is the limit")
            if self._used[client] >= self._for_client:
                raise NoFreeSlotError(
                    f"{self._for_client} requests of this client are in progress, which is the limit"
                )
            self._used[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._used[client] -= 1
                if not self._used[client]:
                    del self._used[client]
