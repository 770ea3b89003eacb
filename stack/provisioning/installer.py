"""Installs one locked virtual environment: with uv, or with pip when uv fails."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from stack.provisioning.layout import REQUIREMENTS, Layout
from stack.provisioning.pip_settings import uv_environment

# Building a package (PySpark is a source distribution) takes much less, even on a slow disk.
INSTALL_TIMEOUT_S = 3600


class InstallationError(Exception):
    """An environment could not be installed; the message contains the end of the installer's output."""


def install(layout: Layout, environment: str, base_python: str) -> None:
    """Install exactly the packages of its lock file into the virtual environment; quick when it is up to date.

    Raises:
        InstallationError: both uv and pip failed.
    """
    # No stamp: an earlier installation was interrupted and may have left an incomplete package.
    from_scratch = not layout.stamp(environment).exists()
    layout.mark_unready(environment)
    try:
        _install_with_uv(layout, environment, base_python, from_scratch=from_scratch)
    except InstallationError as with_uv:
        try:
            _install_with_pip(layout, environment, base_python)
        except InstallationError as with_pip:
            message = f"uv: {with_uv}\npip: {with_pip}"
            raise InstallationError(message) from with_pip
    layout.mark_ready(environment)


def installed_packages(layout: Layout, environment: str) -> int:
    """Return the number of packages installed so far."""
    return sum(1 for _ in layout.environment(environment).glob("lib/python*/site-packages/*.dist-info"))


def locked_packages(environment: str) -> list[str]:
    """List the requirements of the environment's lock file, without digests and comments."""
    return list(_requirements(REQUIREMENTS[environment]))


def _requirements(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        requirement = line.partition("#")[0].rstrip("\\ ")
        if requirement and not requirement.lstrip().startswith("--hash="):
            yield requirement


def _install_with_uv(layout: Layout, environment: str, base_python: str, *, from_scratch: bool) -> None:
    directory = layout.environment(environment)
    uv = layout.environment("bootstrap") / "bin" / "uv"
    settings = {**os.environ, **uv_environment(layout.python("bootstrap"))}
    make: list[str | Path] = [uv, "venv", "--quiet", "--clear", "--python", base_python, directory]
    sync: list[str | Path] = [uv, "pip", "sync", "--quiet", "--python", layout.python(environment)]
    sync += ["--require-hashes", REQUIREMENTS[environment]]
    if from_scratch:
        _run(make, settings)
    try:
        _run(sync, settings)
    except InstallationError:
        if from_scratch:
            raise
        _run(make, settings)
        _run(sync, settings)


def _install_with_pip(layout: Layout, environment: str, base_python: str) -> None:
    _run([base_python, "-m", "venv", "--clear", "--without-pip", layout.environment(environment)])
    pip: list[str | Path] = [layout.python("bootstrap"), "-m", "pip", "--python", layout.python(environment)]
    _run([*pip, "install", "--quiet", "--require-hashes", "--requirement", REQUIREMENTS[environment]])


def _run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, env=environment, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallationError(str(error)) from error
    if done.returncode != 0:
        raise InstallationError((done.stderr or done.stdout).strip()[-3000:])
