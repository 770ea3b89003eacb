"""Hosts that run Foldlake's processes with the code of one release or of another, as an upgrade does."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from include.settings import CHECKOUT, PREFIX, Settings, settings_environment
from stack.stack_guard import guarded

# The state of the code before docker-compose.yaml worked on an engine. No release has a tag yet.
PREVIOUS_COMMIT = "9295487"
PREPARE_TIMEOUT_S = 1800.0
COMMAND_TIMEOUT_S = 600.0


class NoPreviousReleaseError(Exception):
    """The previous release's code is not in this clone; the message is git's."""


@dataclass(frozen=True)
class Release:
    """The code of a release, and the tools that it is prepared with."""

    checkout: Path
    tools: Path

    def run(self, settings: Settings, *words: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Run a command of `./foldlake` of this release, and return what it prints; the test fails if the command does."""
        done = subprocess.run(
            [self.checkout / "foldlake", *words],
            env=self._environment(settings),
            cwd=self.checkout,
            timeout=timeout_s,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def _environment(self, settings: Settings) -> dict[str, str]:
        """Return only the settings that differ from the defaults: an earlier release does not know all of them."""
        defaults = settings_environment(Settings.of())
        changed = {
            name: value
            for name, value in settings_environment(settings).items()
            if defaults.get(name) != value
        }
        others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        return {**others, **changed, f"{PREFIX}TOOLS": str(self.tools)}


def this_release(settings: Settings) -> Release:
    """Return the release of this checkout, prepared."""
    release = Release(CHECKOUT, settings.tools)
    release.run(settings, "prepare", timeout_s=PREPARE_TIMEOUT_S)
    return release


def previous_release(settings: Settings) -> Release:
    """Return the previous release with its own tools, which the first call prepares (minutes, 3.5 GB).

    Raises NoPreviousReleaseError.
    """
    folder = settings.tools / "releases" / PREVIOUS_COMMIT
    release = Release(folder / "checkout", folder / "tools")
    if not release.checkout.exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / "checkout.tar"
        done = subprocess.run(
            ["git", "archive", "--output", archive, PREVIOUS_COMMIT],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NoPreviousReleaseError(done.stderr.strip())
        unfinished = folder / "checkout.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.unpack_archive(archive, unfinished)
        unfinished.rename(release.checkout)
    release.run(settings, "prepare", timeout_s=PREPARE_TIMEOUT_S)
    return release


@dataclass(frozen=True)
class Host:
    """A machine with a home of its own, which runs some components."""

    settings: Settings
    components: str

    def start(self, release: Release) -> None:
        """Start the components with the code of a release, and return when they are ready."""
        release.run(self.settings, "up", "--only", self.components)

    def replace(self, old: Release, new: Release) -> None:
        """Stop the components of one release, and start those of another one."""
        old.run(self.settings, "down")
        self.start(new)


@contextmanager
def host(settings: Settings, components: str) -> Iterator[Host]:
    """Yield a host, whose processes end with the block."""
    with guarded(settings):
        yield Host(settings, components)


def copied_release(folder: Path, tools: Path) -> Release:
    """Return a copy of this release's code, which a test may change, with the prepared tools."""
    checkout = folder / "checkout"
    shutil.copytree(
        CHECKOUT, checkout, ignore=shutil.ignore_patterns(".*", "__pycache__", "tests", "docs", "benchmarks")
    )
    return Release(checkout, tools)
