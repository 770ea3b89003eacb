"""Checks of the file systems of Foldlake's directories: locks, shared memory maps, renames, programs. Standard library only."""

import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stack.doctor.finding import Finding, State
from stack.doctor.machine_checks import existing

MOUNTS = Path("/proc/self/mountinfo")
# Their locks and memory maps do not hold between machines, or not at all. LMDB and SQLite forbid them.
NETWORK_TYPES = (
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.sshfs",
    "gfs2",
    "lustre",
    "ncpfs",
    "nfs",
    "smb",
    "smb3",
    "smbfs",
)
CONTENT = b"foldlake"


def check_folder(check: str, variable: str, folder: Path, *, programs: bool) -> Finding:
    """Check the file system of a directory with temporary files in it, or in the nearest folder above it that exists.

    variable: the setting that names the directory. programs: whether programs are executed from it; otherwise it has data.
    """
    existing_folder = existing(folder)
    action = f"Set {variable} to a directory on a local disk that you may write to."
    try:
        with tempfile.TemporaryDirectory(dir=existing_folder, prefix=".foldlake-doctor-") as scratch:
            failures = [*_failures(Path(scratch), programs=programs)]
    except OSError as error:
        return Finding(
            check, State.PROBLEM, f"{existing_folder} cannot be written: {error.strerror}", action=action
        )
    if failures:
        return Finding(check, State.PROBLEM, f"{existing_folder}: {'; '.join(failures)}", action=action)
    kind = file_system_type(existing_folder)
    if kind.startswith(NETWORK_TYPES) and not programs:
        found = f"{kind}, a network file system ({existing_folder})"
        return Finding(check, State.WARNING, found, "a local disk", f"Stores and locks can fail. {action}")
    return Finding(check, State.OK, " ".join(filter(None, (kind, f"({existing_folder})"))))


def _failures(folder: Path, *, programs: bool) -> Iterator[str]:
    """Yield what a file system cannot do."""
    file = folder / "file"
    file.write_bytes(CONTENT)
    if programs and not _executes(folder / "program"):
        yield "it does not execute programs (mount option noexec)"
    try:
        if not _locks(file):
            yield "two processes can hold the same lock"
        if not _maps(file):
            yield "a change in a shared memory map does not reach the file"
        file.replace(folder / "renamed")
        (folder / "link").symlink_to("renamed")
    except OSError as error:
        yield f"locks, memory maps, renames or links fail: {error.strerror}"


def _locks(file: Path) -> bool:
    """Whether a second lock of a file is refused: `flock(2)` of two open files conflicts also in one process."""
    with file.open("rb") as first, file.open("rb") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _maps(file: Path) -> bool:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), len(CONTENT)) as mapped:
        mapped[:] = CONTENT[::-1]
        mapped.flush()
    return file.read_bytes() == CONTENT[::-1]


def _executes(program: Path) -> bool:
    program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    program.chmod(0o700)
    return os.access(program, os.X_OK)


def file_system_type(folder: Path) -> str:
    """Return the type of a folder's file system, such as `ext4`; empty where the system does not list it (macOS)."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    # mountinfo(5): the device is the third field, the type the first one after a lone dash.
    types = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == wanted]
    return types[-1] if types else ""
