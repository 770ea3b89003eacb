"""Prepares missing tools, then executes the command line in place of this process. Standard library only."""

import math
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from include.files import FileLock, holder_of, write_atomically
from stack.provisioning.command_names import overview
from stack.provisioning.installer import InstallationError, install
from stack.provisioning.java import JavaNotFoundError, candidates, find_java
from stack.provisioning.layout import CHECKOUT, DOWNLOADED, PARTS, REQUIREMENTS, Layout
from stack.provisioning.requirements import BYTES_PER_GB, DISK_GB, python_remedy
from stack.provisioning.trainings import TRAININGS, train

HELP = ({"--help"}, {"-h"}, set[str]())
VERSION = ({"--version"}, {"-V"})
# The command that examines a machine on which nothing is prepared, and prepares nothing.
DOCTOR = "doctor"


def launch(arguments: list[str]) -> int:
    """Prepare what is missing, then execute the command line. Returns, with an exit code, only if it is not executed."""
    if set(arguments) in VERSION:
        print(f"foldlake {version()}")
        return 0
    layout = Layout(tools_directory(dict(os.environ)))
    if not is_ready(layout):
        if set(arguments) in HELP:
            print(overview())
            return 0
        if arguments[:1] == [DOCTOR]:
            return _examine(arguments[1:])
        if (failure := _prepare(layout)) is not None:
            return failure
    return _become_command_line(layout, arguments)


def version() -> str:
    """Return the version of this checkout."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def _examine(arguments: list[str]) -> int:
    """Run the doctor's checks that need no tools, and return their exit code."""
    command = [sys.executable, "-P", "-B", "-m", "stack.doctor.unprepared", *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, check=False).returncode


def _prepare(layout: Layout) -> int | None:
    """Prepare what is missing; returns an exit code when that fails."""
    try:
        make_ready(layout)
    except PreparationError as error:
        print(f"foldlake: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run the command again to continue.", file=sys.stderr)
        return 130
    return None


def _become_command_line(layout: Layout, arguments: list[str]) -> NoReturn:
    os.environ["FOLDLAKE_TOOLS"] = str(layout.root)
    os.environ["JAVA_HOME"] = layout.stamp("java").read_text(encoding="utf-8").splitlines()[1]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    python = str(layout.python("main"))
    sys.stdout.flush()
    os.execv(python, [python, "-P", "-m", "cli", *arguments])  # noqa: S606 - our own interpreter


class PreparationError(Exception):
    """The tools cannot be prepared; the message names the remedy."""


def tools_directory(environment: dict[str, str], env_file: Path = CHECKOUT / ".env") -> Path:
    """Return the directory that FOLDLAKE_TOOLS names in the environment or in the checkout's `.env`, or the default."""
    named = setting("FOLDLAKE_TOOLS", environment, env_file)
    return Path(named).expanduser().absolute() if named else CHECKOUT / ".foldlake" / "tools"


def setting(name: str, environment: dict[str, str], env_file: Path = CHECKOUT / ".env") -> str:
    """Return a variable's value with the same rules as include/settings: from the environment, else the file, else empty."""
    value = environment.get(name)
    if value is None:
        with suppress(OSError):
            for line in env_file.read_text(encoding="utf-8").splitlines():
                left, _, right = line.partition("=")
                if left.strip() == name:
                    value = right.strip().strip("\"'")
    return value or ""


def is_ready(layout: Layout) -> bool:
    """Whether everything is prepared; reads a few small files and starts no process."""
    return all(layout.is_ready(part) for part in PARTS) and _java_is_known(layout)


def make_ready(layout: Layout) -> None:
    """Prepare everything that is missing, in one process at a time; other processes wait.

    Raises:
        PreparationError: Java or disk space is missing, or a download has failed.
    """
    layout.root.mkdir(parents=True, exist_ok=True)
    with _preparation_lock(layout):
        if is_ready(layout):
            return
        _find_java(layout)
        if not all(map(layout.is_ready, DOWNLOADED)):
            _download(layout)
        for training in TRAININGS:
            if not layout.is_ready(training.part):
                train(layout, training)


def make_docs_ready(layout: Layout) -> None:
    """Install the environment of the documentation's site if it is missing.

    Raises:
        PreparationError: the packages cannot be installed.
    """
    with _preparation_lock(layout):
        if layout.is_ready("docs"):
            return
        _create_bootstrap(layout)
        try:
            install(layout, "docs", _base_python())
        except InstallationError as error:
            message = f"The packages of the documentation's site cannot be installed. {error}"
            raise PreparationError(message) from error


def _download(layout: Layout) -> None:
    _check_disk(layout)
    _create_bootstrap(layout)
    finished = subprocess.run(
        [
            layout.python("bootstrap"),
            "-P",
            "-m",
            "stack.provisioning.prepare",
            str(layout.root),
            _base_python(),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "FOLDLAKE_MAVEN_MIRROR": setting("FOLDLAKE_MAVEN_MIRROR", dict(os.environ)),
        },
        check=False,
        # The child inherits the lock, so that a killed launcher does not release it while the child still writes.
        close_fds=False,
    )
    if finished.returncode != 0:
        message = "The preparation is incomplete (see above). Run the command again to continue."
        raise PreparationError(message)


@contextmanager
def _preparation_lock(layout: Layout) -> Iterator[None]:
    lock = FileLock(layout.lock, survives_exec=True)
    if not lock.try_acquire():
        holder = holder_of(layout.lock) or "unknown"
        print(f"Waiting for another ./foldlake (process {holder}) to prepare the tools.", file=sys.stderr)
        lock.acquire(wait_s=math.inf)
    try:
        yield
    finally:
        lock.release()


def _java_is_known(layout: Layout) -> bool:
    """Whether the Java that would be chosen now has already been examined (starting a JVM takes too long here)."""
    try:
        binary = layout.stamp("java").read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return False
    return binary == _java_identity()


def _java_identity() -> str:
    """Return the paths of the Java binaries, which change with JAVA_HOME, PATH or the installation."""
    return ":".join(str(binary.resolve()) for binary in candidates(dict(os.environ)) if binary.exists())


def _find_java(layout: Layout) -> None:
    if _java_is_known(layout):
        return
    try:
        java = find_java()
    except JavaNotFoundError as error:
        raise PreparationError(str(error)) from error
    write_atomically(layout.stamp("java"), f"{_java_identity()}\n{java.home}\n")


def _check_disk(layout: Layout) -> None:
    if any(layout.is_ready(part) for part in DOWNLOADED):
        return
    free_gb = shutil.disk_usage(layout.root).free / BYTES_PER_GB
    if free_gb < DISK_GB:
        message = (
            f"The disk of {layout.root} has {free_gb:.1f} GB free; the preparation needs {DISK_GB} GB. "
            "Free some space, or set FOLDLAKE_TOOLS to a directory on a larger disk."
        )
        raise PreparationError(message)


def _create_bootstrap(layout: Layout) -> None:
    """Create the small environment with the installer that creates the other two environments."""
    if layout.is_ready("bootstrap"):
        return
    layout.mark_unready("bootstrap")
    print("Preparing Foldlake's tools (needed only once, downloads about 1.5 GB).", file=sys.stderr)
    try:
        venv.create(layout.environment("bootstrap"), clear=True, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        message = f"{sys.executable} cannot create a virtual environment. {python_remedy()}, then run the command again."
        raise PreparationError(message) from error
    python = layout.python("bootstrap")
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--require-hashes"]
    installed = subprocess.run([*install, "--requirement", REQUIREMENTS["bootstrap"]], check=False)
    if installed.returncode != 0:
        message = "pip cannot install the installer (see above). Check that your pip configuration reaches a package index."
        raise PreparationError(message)
    layout.mark_ready("bootstrap")


def _base_python() -> str:
    """Return the interpreter that environments are created from: never one inside an environment."""
    return getattr(sys, "_base_executable", None) or sys.executable
