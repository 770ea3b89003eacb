"""A node that demands API keys, for the tests of this folder."""

from pathlib import Path

import pytest

from tests.unit.query_api.http.access.guarded import Guarded, guarded_node


@pytest.fixture(autouse=True)
def changes_are_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the file of the keys for each request."""
    monkeypatch.setattr("query_api.shared_file.CHECK_S", 0.0)


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    """A node that demands API keys."""
    return guarded_node(tmp_path)
