"""A digest of the read models and event schemas, which the stream driver and the query nodes read only when they start."""

import hashlib
from pathlib import Path

import include.read_models
from include.kafka.record_schema import EVENT_SCHEMAS
from include.settings import Settings

READ_MODELS = Path(next(iter(include.read_models.__path__)))


def declarations_digest(settings: Settings) -> str:
    """Return a digest of the names and contents of these files, which changes when one is added, removed or changed."""
    files = [*READ_MODELS.rglob("*.py"), *READ_MODELS.rglob("*.avsc"), *EVENT_SCHEMAS.glob("*.avsc")]
    if settings.read_models_dir is not None:
        files += settings.read_models_dir.glob("*.py")
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(hashlib.sha256(path.name.encode()).digest())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
