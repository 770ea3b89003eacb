"""Installs one locked virtual environment: with uv, or with pip where uv cannot."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from stack.provisioning.layout import REQUIREMENTS, Layout
from stack.provisioning.pip_settings import uv_environment

# A package that is built (PySpark comes as source) and written to a slow disk stays well below this.
INSTALL_TIMEOUT_S = 3600


class InstallationError(Exception):
    """An environment could not be installed; the message holds the installer's own last words."""


def install(layout: Layout, environment: str, base_python: str) -> None:
    """Make the virtual environment hold what its lock file lists, and nothing else; cheap where it already does.

    Raises:
        InstallationError: neither uv nor pip could.
    """
    # Without a stamp it was interrupted, and a package may be there in part: from nothing then.
    anew = not layout.stamp(environment).exists()
    layout.mark_unready(environment)
    try:
        _install_with_uv(layout, environment, base_python, anew=anew)
    except InstallationError as with_uv:
        try:
            _install_with_pip(layout, environment, base_python)
        except InstallationError as with_pip:
            message = f"uv: {with_uv}\npip: {with_pip}"
            raise InstallationError(message) from with_pip
    layout.mark_ready(environment)


def installed_packages(layout: Layout, environment: str) -> int:
    """Count the packages that are in the environment by now."""
    return sum(1 for _ in layout.environment(environment).glob("lib/python*/site-packages/*.dist-info"))


def locked_packages(environment: str) -> list[str]:
    """List the requirements of the environment's lock file, without comments."""
    return list(_requirements(REQUIREMENTS[environment]))


def _requirements(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        requirement = line.partition("#")[0].strip()
        if requirement:
            yield requirement


def _install_with_uv(layout: Layout, environment: str, base_python: str, *, anew: bool) -> None:
    directory = layout.environment(environment)
    uv = layout.environment("bootstrap") / "bin" / "uv"
    settings = {**os.environ, **uv_environment(layout.python("bootstrap"))}
    make: list[str | Path] = [uv, "venv", "--quiet", "--clear", "--python", base_python, directory]
    sync: list[str | Path] = [uv, "pip", "sync", "--quiet", "--python", layout.python(environment)]
    sync.append(REQUIREMENTS[environment])
    if anew:
        _run(make, settings)
    try:
        _run(sync, settings)
    except InstallationError:
        if anew:
            raise
        _run(make, settings)
        _run(sync, settings)


def _install_with_pip(layout: Layout, environment: str, base_python: str) -> None:
    _run([base_python, "-m", "venv", "--clear", "--without-pip", layout.environment(environment)])
    pip: list[str | Path] = [layout.python("bootstrap"), "-m", "pip", "--python", layout.python(environment)]
    _run([*pip, "install", "--quiet", "--requirement", REQUIREMENTS[environment]])


def _run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, env=environment, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallationError(str(error)) from error
    if done.returncode != 0:
        raise InstallationError((done.stderr or done.stdout).strip()[-3000:])
