"""What `./foldlake new` writes works as it is: the tests that come with a read model, a route and an emission pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.declarations.catalog import load_catalog
from include.settings import CHECKOUT

TIMEOUT_S = 500.0


def foldlake(folder: Path, *arguments: str) -> str:
    """Run a command with a folder of additional declarations; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "FOLDLAKE_READ_MODELS_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_new_declarations_pass_their_own_tests(tmp_path: Path) -> None:
    foldlake(tmp_path, "cli", "new", "read-model", "parcels")
    foldlake(
        tmp_path,
        "cli",
        "new",
        "route",
        "parcel-copies",
        "--from",
        "parcels-events",
        "--event-type",
        "ParcelsRecorded",
    )
    foldlake(tmp_path, "cli", "new", "emission", "parcel-totals", "--read-model", "parcels")

    catalog = load_catalog((tmp_path,))
    assert "parcels" in catalog.models
    assert catalog.routes["parcel-copies"].output_schema.key_field == "entityId"
    assert catalog.emissions["parcel-totals"].read_model == "parcels"
    output = foldlake(tmp_path, "pytest", str(tmp_path / "tests"), "-q", "-p", "no:cacheprovider")
    assert "3 passed" in output
