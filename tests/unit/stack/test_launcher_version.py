"""The launcher prints the version without any tools."""

import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import CHECKOUT
from stack.provisioning.launcher import version


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_printed_before_the_tools_are_prepared(option: str, tmp_path: Path) -> None:
    command = [sys.executable, str(CHECKOUT / "foldlake"), option]
    environment = {"PATH": "", "FOLDLAKE_TOOLS": str(tmp_path / "tools")}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == f"foldlake {version()}\n"
    assert not (tmp_path / "tools").exists()


def test_the_newest_version_is_in_the_changelog() -> None:
    assert f"## {version()} " in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
