"""Small files beside a checkpoint survive a driver that is killed while it writes them."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from spark_jobs.runtime import checkpoint

NO_SESSION: Any = None


def test_a_local_file_is_replaced_without_hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "v1.written"
    file.write_text("old")
    checksum = tmp_path / ".v1.written.crc"
    checksum.write_text("of the old content")
    location, file_system = MagicMock(), MagicMock()
    location.toUri.return_value.getPath.return_value = str(file)
    file_system.getUri.return_value.getScheme.return_value = "file"
    monkeypatch.setattr(checkpoint, "_path", lambda _spark, _location: (location, file_system))

    checkpoint.write_text(NO_SESSION, str(file), "new")

    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file], "a checksum of the old content makes the new one unreadable"
    file_system.create.assert_not_called()
