"""What `./foldlake` does before the command line proper: make sure the tools are there. Standard library only."""

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from stack.provisioning.command_names import overview
from stack.provisioning.java import JavaNotFoundError, candidates, find_java
from stack.provisioning.layout import CHECKOUT, PARTS, REQUIREMENTS, Layout, write_whole

# Measured: 2.7 GB once all is there, and as much again for the installer's cache where it is on the same disk.
NEEDED_DISK_MB = 6000
HELP = ({"--help"}, {"-h"}, set[str]())


def launch(arguments: list[str]) -> int:
    """Prepare what is missing, then become the command line. Returns only when that failed."""
    layout = Layout(tools_directory(dict(os.environ)))
    if not is_ready(layout):
        if set(arguments) in HELP:
            print(overview())
            return 0
        if (failure := _prepare(layout)) is not None:
            return failure
    return _become_command_line(layout, arguments)


def _prepare(layout: Layout) -> int | None:
    """Prepare what is missing; returns an exit code when that failed."""
    try:
        make_ready(layout)
    except PreparationError as error:
        print(f"foldlake: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run it again: it goes on where it stopped.", file=sys.stderr)
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
    """Something stands in the way of preparing; the message says what to do."""


def tools_directory(environment: dict[str, str], env_file: Path = CHECKOUT / ".env") -> Path:
    """Directory named by FOLDLAKE_TOOLS, in the environment or in the checkout's `.env`."""
    named = setting("FOLDLAKE_TOOLS", environment, env_file)
    return Path(named).expanduser().absolute() if named else CHECKOUT / ".foldlake" / "tools"


def setting(name: str, environment: dict[str, str], env_file: Path = CHECKOUT / ".env") -> str:
    """Read one variable as include/settings will: from the environment, else from the file, else empty."""
    value = environment.get(name)
    if value is None:
        with suppress(OSError):
            for line in env_file.read_text(encoding="utf-8").splitlines():
                left, _, right = line.partition("=")
                if left.strip() == name:
                    value = right.strip().strip("\"'")
    return value or ""


def is_ready(layout: Layout) -> bool:
    """Whether nothing is left to prepare; reads a few small files and starts no process."""
    return all(layout.is_ready(part) for part in PARTS) and _java_is_known(layout)


def make_ready(layout: Layout) -> None:
    """Prepare all that is missing; one process at a time does it, the others wait for it.

    Raises:
        PreparationError: Java, disk space or a download is missing.
    """
    layout.root.mkdir(parents=True, exist_ok=True)
    with _only_one(layout):
        if is_ready(layout):
            return
        _find_java(layout)
        _check_disk(layout)
        _make_bootstrap(layout)
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
        )
        if finished.returncode != 0:
            message = (
                "not everything could be prepared (see above). Run it again: it goes on where it stopped."
            )
            raise PreparationError(message)


@contextmanager
def _only_one(layout: Layout) -> Iterator[None]:
    with layout.lock.open("a") as lock:
        # Inherited on purpose: the lock outlives a killed launcher for as long as its children still write.
        os.set_inheritable(lock.fileno(), True)  # noqa: FBT003 - the standard library's signature
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another ./foldlake is preparing the tools; waiting for it.", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _java_is_known(layout: Layout) -> bool:
    """Whether the Java that would be chosen now is the one that was examined (a JVM start costs too much here)."""
    try:
        binary = layout.stamp("java").read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return False
    return binary == _java_identity()


def _java_identity() -> str:
    """Name the Java binaries that are there, so that a change of JAVA_HOME, PATH or installation shows."""
    return ":".join(str(binary.resolve()) for binary in candidates(dict(os.environ)) if binary.exists())


def _find_java(layout: Layout) -> None:
    if _java_is_known(layout):
        return
    try:
        java = find_java()
    except JavaNotFoundError as error:
        raise PreparationError(str(error)) from error
    write_whole(layout.stamp("java"), f"{_java_identity()}\n{java.home}\n")


def _check_disk(layout: Layout) -> None:
    if any(layout.is_ready(part) for part in PARTS):
        return
    free_mb = shutil.disk_usage(layout.root).free // 1_000_000
    if free_mb < NEEDED_DISK_MB:
        message = (
            f"{free_mb} MB are free where {layout.root} is; preparing takes {NEEDED_DISK_MB} MB. "
            "Free some space, or set FOLDLAKE_TOOLS to a directory on a larger disk."
        )
        raise PreparationError(message)


def _make_bootstrap(layout: Layout) -> None:
    """Make the small environment whose installer makes the other two."""
    if layout.is_ready("bootstrap"):
        return
    layout.mark_unready("bootstrap")
    print("Preparing Foldlake's tools, once: about 1.5 GB of downloads.", file=sys.stderr)
    try:
        venv.create(layout.environment("bootstrap"), clear=True, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        message = (
            f"{sys.executable} cannot make a virtual environment. Install its venv module "
            "(Debian and Ubuntu: python3.11-venv), then run this again."
        )
        raise PreparationError(message) from error
    python = layout.python("bootstrap")
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS["bootstrap"]],
        check=False,
    )
    if installed.returncode != 0:
        message = "pip could not install the installer (see above). Is the package index reachable with your pip configuration?"
        raise PreparationError(message)
    layout.mark_ready("bootstrap")


def _base_python() -> str:
    """Interpreter that environments are made from: never one that is itself inside an environment."""
    return getattr(sys, "_base_executable", None) or sys.executable
