"""A read model like `balance` on topics of its own, whose records no other test sees."""

from pathlib import Path

from include.settings import Settings

MODULE = """
from dataclasses import replace

from include.read_models.balance.model import READ_MODEL as BALANCE

DECLARATIONS = [replace(BALANCE, name={name!r}, source_topic={name!r})]
"""


def with_balance_copy(settings: Settings, name: str, folder: Path) -> Settings:
    """Return settings with this additional read model, which `folder` then contains."""
    (folder / f"{name.replace('-', '_')}.py").write_text(MODULE.format(name=name), encoding="utf-8")
    return settings.changed(read_models_dir=folder)
