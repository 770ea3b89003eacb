"""The linter, the formatter and the type checker accept the checkout (`tests/unit/project` runs import-linter)."""

import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import CHECKOUT

RUFF = str(Path(sys.executable).with_name("ruff"))
CHECKS = {
    "ruff-check": (RUFF, "check"),
    "ruff-format": (RUFF, "format", "--check"),
    "mypy": (sys.executable, "-m", "mypy"),
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_checkout_is_accepted(check: str) -> None:
    done = subprocess.run(
        CHECKS[check], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
