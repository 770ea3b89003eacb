"""A digest of the read models, their APIs and event schemas, which the stream driver and the nodes read only at start-up."""

import hashlib
from pathlib import Path

from include.declarations.event_types.event_schemas import READ_MODELS


def declarations_digest(folders: tuple[Path, ...]) -> str:
    """Return a digest of the paths and contents of these files, which changes when one is added, removed or changed."""
    digest = hashlib.sha256()
    for directory in (READ_MODELS, *folders):
        for path in sorted(_files(directory)):
            digest.update(hashlib.sha256(str(path.relative_to(directory)).encode()).digest())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files(directory: Path) -> list[Path]:
    return [*directory.rglob("*.py"), *directory.rglob("*.avsc")]
