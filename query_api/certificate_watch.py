"""Watches the certificate of a server: granian reads it when a worker starts, so a renewed one needs new workers."""

import logging
import threading
from collections.abc import Callable

from include.errors import SettingsError
from include.nodes.peer_tls import TlsFiles, signature_of
from query_api.listener import require_usable

POLL_S = 1.0
# A replacement that has failed is requested again.
RETRY_S = 60.0

log = logging.getLogger(__name__)


class CertificateWatch:
    """Calls a function when the files have changed and can be used, until `stop`. Create it before the server reads them.

    is_final: whether the function ends the use of the former files for sure. Otherwise it is called again after a while.
    """

    def __init__(self, files: TlsFiles, *, is_final: bool) -> None:
        self._files = files
        self._is_final = is_final
        self._used = signature_of(files.paths)
        self._seen = self._used
        self._stopping = threading.Event()

    def start(self, replace: Callable[[], None]) -> None:
        """Start watching in a thread, which calls `replace`."""
        threading.Thread(target=self._run, args=(replace,), name="certificate watch", daemon=True).start()

    def stop(self) -> None:
        """Stop watching; returns immediately."""
        self._stopping.set()

    def _run(self, replace: Callable[[], None]) -> None:
        pause_s = POLL_S
        while not self._stopping.wait(pause_s):
            pause_s = RETRY_S if self.look(replace) else POLL_S

    def look(self, replace: Callable[[], None]) -> bool:
        """Look once, and return whether `replace` was called: when files that differ from those in use have not changed since the last look."""
        now, before = signature_of(self._files.paths), self._seen
        self._seen = now
        if now == self._used or now != before:
            return False
        try:
            require_usable(self._files)
        except SettingsError as error:
            log.warning("changed certificates are not used yet: %s", error)
            return False
        log.info("the certificate has changed: new workers use it")
        replace()
        if self._is_final:
            self._used = now
        return True
