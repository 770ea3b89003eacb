"""`./foldlake demo` as run by a user: real input through the whole stack."""

import os
import subprocess
import sys

import pytest

from include.settings import CHECKOUT, Settings
from stack.settings_environment import settings_environment


@pytest.mark.timeout(900)
def test_demo_finds_every_balance_exact_on_both_nodes(full_stack: Settings) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "demo"],
        env={**os.environ, **settings_environment(full_stack), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "120"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=880,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "data set" in done.stdout
    assert "2,469" in done.stdout
    assert "155,370" in done.stdout
    assert "4,596,039.58" in done.stdout
