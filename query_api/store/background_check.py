"""Checks all records of a store while it is in use, and reports damage as a reader does."""

import logging
import time
from contextlib import suppress

from query_api.errors import StoreDamagedError, StoreMissingError, StoreWriteError
from query_api.store.checks import StoreCheck
from query_api.store.directory import StoreDirectory

# When a check that could not be carried out is tried again.
RETRY_S = 60.0

log = logging.getLogger(__name__)


class BackgroundCheck:
    """The check of a version's store since it was opened. Its writer's thread calls `step` about once a second."""

    def __init__(self, directory: StoreDirectory, model: str, version: int) -> None:
        self._directory = directory
        self._store = (model, version)
        self._path = directory.path(model, version)
        self._check: StoreCheck | None = None
        self._began_s = 0.0
        self._next_s = 0.0
        self.is_over = False

    def step(self) -> None:
        """Begin the check, or note its result. Damage is reported: the materializer then replaces the store."""
        if self.is_over or time.monotonic() < self._next_s:
            return
        try:
            self._step()
        except StoreWriteError as error:
            log.warning("the records are not checked now: %s", error)
            self._check, self._next_s = None, time.monotonic() + RETRY_S

    def _step(self) -> None:
        if self._check is None:
            self._check, self._began_s = self._directory.begin_check(*self._store), time.monotonic()
            self.is_over = self._check is None
            return
        if not self._check.wait(0.0):
            return
        finding = self._check.finding()
        if finding is not None:
            with suppress(StoreMissingError):  # which the materializer notices as well
                self._directory.report_damage(*self._store, StoreDamagedError.at(self._path, finding))
        else:
            self._directory.note_checked(*self._store)
            took_s = time.monotonic() - self._began_s
            log.info("all records of the store at %s are intact; the check took %.1f s", self._path, took_s)
        self.is_over = True

    def stop(self) -> None:
        """End the check before the store is closed."""
        self.is_over = True
        if self._check is not None:
            self._check.stop()
