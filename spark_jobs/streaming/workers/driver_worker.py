"""A thread of the driver beside its queries, which works until it is stopped. No thread of Spark or of the driver's loop waits for it."""

import logging
import threading
from abc import ABC, abstractmethod

from include.errors import FoldlakeError

LOG = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0


class DriverWorker(ABC):
    """Works again and again, also after an error: nobody would notice a thread that has ended.

    pause_s: between the end of a piece of work and the next one.
    """

    def __init__(self, name: str, pause_s: float) -> None:
        self._name = name
        self._pause_s = pause_s
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start to work."""
        self._thread.start()

    def request_stop(self) -> None:
        """Have the thread end after the piece of work that is being done, without waiting for it."""
        self._is_stopping.set()

    def stop(self) -> None:
        """Stop after the piece of work that is being done."""
        self.request_stop()
        self._thread.join(STOP_TIMEOUT_S)

    @abstractmethod
    def _work(self) -> None:
        """Do one piece of work, or several until `_is_stopping` is set. What an error has interrupted, the next call begins again."""

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                self._work()
            except FoldlakeError as error:
                LOG.warning("%s: %s; trying again", self._name, error)
            except Exception:
                LOG.exception("%s failed; trying again", self._name)
            self._is_stopping.wait(self._pause_s)
