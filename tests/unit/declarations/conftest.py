"""A home without enabled systems: that of the checkout has those whose demo has run."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def new_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use a home that does not exist yet."""
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path / "home"))
