"""The threads of a materializer: each calls one function again and again, and the main loop learns of an error in any of them."""

import threading
from collections.abc import Callable, Mapping


class WatchedThreads:
    """Threads that end when `stopping` is set. on_failure: called by a thread that ends with an error."""

    def __init__(self, stopping: threading.Event, on_failure: Callable[[], None]) -> None:
        self._stopping = stopping
        self._on_failure = on_failure
        self._threads: list[_WatchedThread] = []

    def start(self, turns: Mapping[str, Callable[[], None]]) -> None:
        """Start a thread for each function, by the thread's name."""
        self._threads = [
            _WatchedThread(name, turn, self._stopping, self._on_failure) for name, turn in turns.items()
        ]
        for thread in self._threads:
            thread.start()

    def raise_failure(self) -> None:
        """Raise the error of a thread that failed, if any."""
        for thread in self._threads:
            if thread.failure is not None:
                raise thread.failure

    def join(self, timeout_s: float) -> None:
        """Wait for the end of each thread, for this long at most."""
        for thread in self._threads:
            thread.join(timeout_s)


class _WatchedThread(threading.Thread):
    """Calls `turn` until `stopping` is set; an error ends it and becomes `failure`."""

    def __init__(
        self, name: str, turn: Callable[[], None], stopping: threading.Event, on_failure: Callable[[], None]
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._turn = turn
        self._stopping = stopping
        self._on_failure = on_failure
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
        except Exception as error:  # noqa: BLE001 - the main loop re-raises it
            self.failure = error
            self._on_failure()
