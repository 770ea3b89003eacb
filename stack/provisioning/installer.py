"""Installs one locked virtual environment: with uv, or with pip when uv fails.

uv does not read pip's configuration (index, certificates, timeouts), so it is converted.
"""

import ast
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from stack.provisioning.layout import REQUIREMENTS, Layout

# Building a package (PySpark is a source distribution) takes much less, even on a slow disk.
INSTALL_TIMEOUT_S = 3600
# pip's name -> uv's environment variable. https://docs.astral.sh/uv/reference/environment/
NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
# Takes a second; on a busy machine, more than a minute was measured.
PIP_TIMEOUT_S = 600


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
    # Programs start in half the time, also where they may not write the bytecode, or must not (PYTHONDONTWRITEBYTECODE).
    sync += ["--compile-bytecode", "--require-hashes", REQUIREMENTS[environment]]
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


def uv_environment(pip_python: Path) -> dict[str, str]:
    """Return environment variables for uv from the configuration of this interpreter's pip, except those already set."""
    done = subprocess.run(
        [pip_python, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        timeout=PIP_TIMEOUT_S,
        check=False,
    )
    wanted = {
        # The interpreter is passed by its path; uv must not download another one.
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy" if os.environ.get("UV_LINK_MODE") == "copy" else "hardlink",
        **translate(done.stdout),
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}


def translate(pip_config_list: str) -> dict[str, str]:
    """Translate the output of `pip config list`: lines such as `global.index-url='https://…'`."""
    variables: dict[str, str] = {}
    for line in pip_config_list.splitlines():
        key, _, quoted = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        variable = NAMES.get(name)
        if variable is None or section not in {"global", "install", ":env:"}:
            continue
        value = str(ast.literal_eval(quoted.strip()))
        # pip separates multiple values by white space; so does uv, except for find-links, which it separates by commas.
        variables[variable] = (",".join if variable == "UV_FIND_LINKS" else " ".join)(value.split())
    return variables
