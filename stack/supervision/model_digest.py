"""What the stream driver and the query nodes read once, when they start: read models, their APIs and event schemas."""

import hashlib
from pathlib import Path

from include.declarations.modules import READ_MODELS
from include.settings import Settings


def declarations_digest(settings: Settings) -> str:
    """Return a digest of paths and contents of all these files: another one when any is added, removed or changed."""
    directories = [READ_MODELS, *([settings.read_models_dir] if settings.read_models_dir else [])]
    digest = hashlib.sha256()
    for directory in directories:
        for path in sorted(_files(directory)):
            digest.update(hashlib.sha256(str(path.relative_to(directory)).encode()).digest())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files(directory: Path) -> list[Path]:
    return [*directory.rglob("*.py"), *directory.rglob("*.avsc")]
