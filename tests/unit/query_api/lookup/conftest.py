"""The settings of a node with a home of its own."""

from pathlib import Path

import pytest

from include.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a node whose files are in the test's folder."""
    return Settings.of(home=tmp_path)
