"""Runs a Python module with a folder of additional declarations, as a user of the checkout does."""

import os
import subprocess
import sys
from pathlib import Path

from include.settings import CHECKOUT

TIMEOUT_S = 500.0


def run_module(folder: Path, *arguments: str, text: str = "") -> str:
    """Run `python -m` with these arguments and this standard input, with `folder` as the declarations; it must succeed. Return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "FOLDLAKE_READ_MODELS_DIR": str(folder)},
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
