"""A whole stack with a copy of the system `pos`, so that a test may change its declarations."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.pos.dataset import SYSTEM
from include.settings import Settings
from tests.integration.pos_stack.tills import Tills
from tests.support.temporary_stack import temporary_stack


@pytest.fixture(scope="package")
def declarations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the system's folder."""
    return shutil.copytree(
        SYSTEM,
        tmp_path_factory.mktemp("declarations") / "pos",
        ignore=shutil.ignore_patterns("__pycache__"),
    )


@pytest.fixture(scope="package")
def stack(declarations: Path, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with every component up."""
    with temporary_stack(
        keep_home=keep_home, read_models_dir=declarations, compaction_interval_s=0
    ) as settings:
        yield settings


@pytest.fixture(scope="package")
def tills(stack: Settings) -> Tills:
    """The tills, which have sent nothing so far."""
    return Tills(stack)
