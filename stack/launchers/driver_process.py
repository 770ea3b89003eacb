"""A driver that its supervisor has launched: its process, and the end of its output."""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import IO, Self

from include.process import LAUNCHER
from include.settings import CHECKOUT
from include.stream.driver_configuration import SETTING_NAMES
from include.stream.driver_launch import READY

# What a report repeats of the driver's output.
OUTPUT_LINES = 60


@dataclass(frozen=True)
class DriverProcess:
    """The process, which becomes the JVM, since when it is the driver, and the reader of its output.

    Launch it in the main thread: it dies with the thread that launched it.
    """

    process: subprocess.Popen[str]
    at: datetime
    lines: deque[str]
    reader: threading.Thread
    ready: threading.Event

    @classmethod
    def launch(cls, command: tuple[str, ...], settings: Mapping[str, str] | None = None) -> Self:
        """Start the command, and pass its output on to this process's own.

        settings: variables that replace all settings of this process's environment; None: it has those of this process.
        """
        inherited = {
            name: value for name, value in os.environ.items() if settings is None or name not in SETTING_NAMES
        }
        at = datetime.now(UTC)
        process = subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env={**inherited, **(settings or {}), LAUNCHER: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        lines: deque[str] = deque(maxlen=OUTPUT_LINES)
        assert process.stdout is not None  # noqa: S101 - because of stdout=PIPE
        ready = threading.Event()
        reader = threading.Thread(target=_pass_on, args=(process.stdout, lines, ready), daemon=True)
        reader.start()
        return cls(process, at, lines, reader, ready)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    @property
    def is_ready(self) -> bool:
        """Whether this is a standby that is ready to fold."""
        return self.ready.is_set() and not self.has_ended

    @property
    def output(self) -> str:
        """The last lines of the output; waits for the rest of it when the process has ended."""
        if self.has_ended:
            # A process of the driver that outlives it may keep the pipe open.
            self.reader.join(timeout=1.0)
        return "".join(self.lines)

    def kill(self) -> None:
        """Kill the process, and wait until it has ended."""
        self.process.kill()
        self.process.wait()

    def from_now(self) -> Self:
        """Return this process as the driver from now on."""
        return replace(self, at=datetime.now(UTC))


def _pass_on(source: IO[str], lines: deque[str], ready: threading.Event) -> None:
    with source:
        for line in source:
            lines.append(line)
            if READY in line:
                ready.set()
            sys.stdout.write(line)
            sys.stdout.flush()
