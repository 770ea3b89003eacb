"""Explains keys, each in a process, one at a time in a home, and keeps the results for a while."""

import hashlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.files import PRIVATE_FILE, FileLock, holder_of, write_atomically
from include.settings import CHECKOUT, Settings, settings_environment
from include.versions.explanation import (
    PROGRAM,
    Explanation,
    NotExplainedError,
    failure_json,
    key_argument,
    version_to_explain,
)
from include.versions.registry import VersionRegistry

log = logging.getLogger(__name__)
# How many first, and how many newest events a page shows.
EVENTS = 20
# A request waits for the result for so long: a small log takes less.
WAIT_S = 1.5
# Until then, a result answers every request for the key.
FRESH_S = 30.0
KEPT_S = 3600.0
# A log of a hundred million events takes minutes.
PROGRAM_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class ExplainRequest:
    """A key of a read model, and the number of the version; None for the live one."""

    model: ReadModel
    key: str
    version: int | None

    @property
    def digest(self) -> str:
        """The name of its files."""
        identity = json.dumps((self.model.name, self.key, self.version))
        return hashlib.sha256(identity.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Pending:
    """A request that has no result yet. since_s: seconds since its program was started; None: another key is explained first."""

    since_s: float | None


class Explanations:
    """Explanations on this machine, shared by the processes of all of its nodes through files in `<home>/explain/`."""

    def __init__(self, settings: Settings, run: Callable[[ExplainRequest, Path], None] | None = None) -> None:
        """run: explains a request, and writes the result to a file; by default a process does."""
        self._settings = settings
        self._folder = settings.home / "explain"
        self._run = run or self._run_program

    def find(self, request: ExplainRequest) -> Explanation | Pending:
        """Return the explanation if there is a recent one; else start it, and wait for up to WAIT_S, or for its turn.

        Raises NotExplainedError with the reason, for as long as a result is kept.
        """
        text = self._recent(request)
        if text is not None:
            return Explanation.from_json(text)
        lock = FileLock(self._folder / "lock")
        if lock.try_acquire(request.digest):
            # The program may have ended between the look at its result and this one.
            text = self._recent(request)
            if text is not None:
                lock.release()
                return Explanation.from_json(text)
            # The kernel would kill the process when the thread that has started it ends, and a server's threads end when they are idle.
            thread = threading.Thread(target=self._explain, args=(request, lock), daemon=True)
            thread.start()
            thread.join(WAIT_S)
            text = self._recent(request)
            return Pending(0.0) if text is None else Explanation.from_json(text)
        if holder_of(lock.path) != request.digest:
            return Pending(None)
        return Pending(max(0.0, time.time() - lock.path.stat().st_mtime))

    def _result(self, request: ExplainRequest) -> Path:
        return self._folder / f"{request.digest}.json"

    def _recent(self, request: ExplainRequest) -> str | None:
        path = self._result(request)
        try:
            if time.time() - path.stat().st_mtime > FRESH_S:
                return None
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _explain(self, request: ExplainRequest, lock: FileLock) -> None:
        try:
            self._remove_old()
            try:
                self._require_version(request)
                self._run(request, self._result(request))
            except Exception as error:
                # Whatever it is: the page shows it instead of trying again and again.
                log.exception("a key of %s is not explained", request.model.name)
                reason = error if isinstance(error, FoldlakeError) else NotExplainedError(repr(error))
                write_atomically(self._result(request), failure_json(reason), PRIVATE_FILE)
        finally:
            lock.release()

    def _require_version(self, request: ExplainRequest) -> None:
        """Raise NoVersionToExplainError without a process."""
        with VersionRegistry(self._settings.kafka_connection) as registry:
            version_to_explain(registry.read().get(request.model.name), request.model, request.version)

    def _run_program(self, request: ExplainRequest, result: Path) -> None:
        version = () if request.version is None else (f"--version={request.version}",)
        arguments = [
            f"--read-model={request.model.name}",
            key_argument(request.key),
            *version,
            f"--events={EVENTS}",
            f"--result={result}",
        ]
        output_path = self._settings.home / "logs" / "explain.log"
        output_path.parent.mkdir(parents=True, exist_ok=True)
        started_s = time.time()
        with output_path.open("wb") as output:
            status = subprocess.run(
                [sys.executable, "-m", PROGRAM, *arguments],
                cwd=CHECKOUT,
                env={**os.environ, **settings_environment(self._settings)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                timeout=PROGRAM_TIMEOUT_S,
            ).returncode
        if not result.exists() or result.stat().st_mtime < started_s:
            raise NotExplainedError(
                f"The program ended with status {status} and no result: see {output_path}."
            )

    def _remove_old(self) -> None:
        for path in self._folder.glob("*.json"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > KEPT_S:
                    path.unlink()
