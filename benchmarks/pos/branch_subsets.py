"""Folders of declarations with only some branches of the system, so that these run alone."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.pos.branches import LOYALTY, NOTIFICATIONS, SHIPMENTS, TREND, Branch
from demo.pos.dataset import SYSTEM

# What runs alone -> its part of the system's folder, beside the schemas, and the branches in it.
SUBSETS: dict[str, tuple[str, tuple[Branch, ...]]] = {
    "shipments": ("shipments.py", (SHIPMENTS,)),
    "trend": ("trend.py", (TREND,)),
    "loyalty": ("loyalty.py", (LOYALTY, NOTIFICATIONS)),
}


@contextmanager
def declared_alone(name: str) -> Iterator[Path]:
    """Yield a folder of declarations with one of SUBSETS."""
    part, _ = SUBSETS[name]
    others = [other for other, _ in SUBSETS.values() if other != part]
    with TemporaryDirectory() as folder:
        yield shutil.copytree(
            SYSTEM, Path(folder) / SYSTEM.name, ignore=shutil.ignore_patterns(*others, "__pycache__")
        )
