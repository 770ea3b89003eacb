"""A reader who follows a page on a running stack: saves files, and runs its commands, Python and SQL in a folder like a checkout."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from include.settings import CHECKOUT, Settings, settings_environment
from stack.process_status import process_statuses
from tests.support.documentation.output_shape import difference, values
from tests.support.documentation.page_blocks import Block, Command

# A lookup may precede the fold of the event that was just appended, or the return of a process that was just killed.
RETRY_S = 60.0
TIMEOUT_S = 600.0
# A stream does not end, so curl ends it, with this exit code.
STREAM, STREAM_S, CURL_TIMED_OUT = "curl -N ", 15, 28
# `KEY=$(./foldlake keys create …)`: later commands of the page use it.
VARIABLE = re.compile(r"^([A-Z]\w*)=\$\(", re.MULTILINE)
PID = re.compile(r"<pid of ([\w-]+)>")
# The ports of the default settings, which pages show -> the setting.
DEFAULTS = Settings.of()
# The home in outputs of pages.
SHOWN_HOME = "/srv/foldlake/.foldlake"


class PageError(AssertionError):
    """An example of a page does not work as it is written."""


class PageFollower:
    """Follows pages in a folder in which paths of a checkout lead to this one, and paths of the home to that of the stack."""

    def __init__(
        self, folder: Path, settings: Settings, known: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Prepare the folder. known: values on the pages, such as a key -> those that the stack has instead."""
        self._folder = folder
        self._settings = settings
        # Values in outputs of the page, such as an offset -> those that the stack has returned.
        self._values = dict(known)
        # The views that the SQL of a page has created: its blocks are of one session.
        self._views: dict[str, str] = {}
        for entry in CHECKOUT.iterdir():
            if entry.name not in {"foldlake", ".foldlake", ".git", ".env"}:
                (folder / entry.name).symlink_to(entry)
        home = folder / ".foldlake"
        home.mkdir()
        for entry in settings.home.iterdir():
            (home / entry.name).symlink_to(entry)
        (home / "tools").unlink(missing_ok=True)
        (home / "tools").symlink_to(settings.tools)
        command = folder / "foldlake"
        command.write_text(
            f'#!/bin/sh\nPYTHONPATH={CHECKOUT} exec {sys.executable} -P -m cli "$@"\n', encoding="utf-8"
        )
        command.chmod(0o755)
        self._environment = os.environ | settings_environment(settings) | {"COLUMNS": "120"}
        ports = zip(DEFAULTS.query_ports, settings.query_ports, strict=True)
        self._ports = {str(shown): str(own) for shown, own in ports} | {
            str(DEFAULTS.airflow.port): str(settings.airflow.port),
            str(DEFAULTS.kafka.port): str(settings.kafka.port),
        }

    def follow(self, block: Block) -> None:
        """Do what a block says; raises PageError if it fails, or has an output of another form."""
        if block.mark == "not run":
            return
        if block.file:
            (self._folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language in {"sh", "console"}:
            for command in block.commands():
                self._run(block, command)
        elif block.language == "sql":
            views = self._views.get(block.page, "")
            if block.text.startswith("create view"):
                self._views[block.page] = views + block.text
            self._run(block, Command(f"./foldlake sql <<'SQL'\n{views}{block.text}\nSQL", None))
        # An excerpt imports nothing, and cannot run by itself.
        elif block.language == "python" and "import " in block.text:
            self._run(block, Command(f"{sys.executable} - <<'PYTHON'\n{block.text}\nPYTHON", None))

    def _run(self, block: Block, command: Command) -> None:
        text = PID.sub(lambda found: self._pid(found[1]), command.text)
        for shown, own in self._ports.items():
            text = re.sub(rf"(?<=127\.0\.0\.1:){shown}\b", own, text)
        for shown, own in self._values.items():
            text = re.sub(rf"\b{re.escape(shown)}\b", own, text)
        is_lookup = text.startswith("curl ") and " -d " not in text
        until = time.monotonic() + (RETRY_S if is_lookup else 0.0)
        while problem := self._problem(text, command):
            if time.monotonic() >= until:
                raise PageError(f"{block.place}: {command.text.strip()}\n{problem}")
            time.sleep(1.0)

    def _problem(self, text: str, command: Command) -> str:
        is_stream = text.startswith(STREAM)
        text = text.replace(STREAM, f"{STREAM}--max-time {STREAM_S} ").replace("curl ", "curl -sS ")
        done = subprocess.run(
            ["bash", "-ec", self._with_variables(text)],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != (CURL_TIMED_OUT if is_stream else 0):
            return f"exit code {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        if command.output is None:
            return ""
        output = done.stdout.replace(str(self._settings.home), SHOWN_HOME)
        problem = difference(command.output, output)
        if not problem:
            self._values |= values(command.output, output)
        return problem

    def _with_variables(self, text: str) -> str:
        """Return a command that knows the variables of earlier ones, and saves its own."""
        saved = self._folder / "variables.sh"
        names = VARIABLE.findall(text)
        known = f". {saved}\n" if saved.exists() else ""
        return f"{known}{text}\n" + (f"declare -p {' '.join(names)} >> {saved}\n" if names else "")

    def _pid(self, process: str) -> str:
        return str(next(row.pid for row in process_statuses(self._settings) if row.name == process))
