"""A digest of the code that a process runs, by which `./foldlake up` notices a new release in the same folder."""

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath

from include.settings import CHECKOUT

# Of files that a process runs, reads or serves. Scripts have no suffix.
SUFFIXES = frozenset({".py", ".avsc", ".html", ".css", ".js", ".sh", ".lock", ".properties", ""})
# These have a digest of their own.
DECLARATIONS = PurePath("include", "read_models")


def code_digest(parts: tuple[str, ...], checkout: Path = CHECKOUT) -> str:
    """Return a digest of the names and contents of folders and files of the checkout, without declarations.

    A process reads each file once.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(_part_digest(checkout, part))
    return digest.hexdigest()


@cache
def _part_digest(checkout: Path, part: str) -> bytes:
    digest = hashlib.sha256()
    for file in sorted(_files(checkout, checkout / part)):
        digest.update(f"{file.relative_to(checkout)}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.digest()


def _files(checkout: Path, path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, folders, names in os.walk(path):
        # Without caches of Python, and files of editors.
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "__pycache__")) and Path(folder, name) != checkout / DECLARATIONS
        ]
        for name in names:
            file = Path(folder, name)
            if file.suffix in SUFFIXES and not name.startswith("."):
                yield file
