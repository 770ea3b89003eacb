"""What `./foldlake new` writes works as it is: the tests that come with a read model, a route, an emission, and a kind from outside pass."""

import shutil
from pathlib import Path

import pytest

from include.declarations.load import load_catalog
from include.settings import CHECKOUT
from tests.integration.declarations.run_module import run_module

KIND = CHECKOUT / "tests" / "support" / "read_models_with_kind" / "distinct.py"


@pytest.mark.endurance
@pytest.mark.timeout(600)
def test_new_declarations_pass_their_own_tests(tmp_path: Path) -> None:
    run_module(tmp_path, "cli", "new", "read-model", "parcels")
    run_module(
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
    run_module(tmp_path, "cli", "new", "emission", "parcel-totals", "--read-model", "parcels")
    shutil.copy(KIND, tmp_path)
    run_module(tmp_path, "cli", "new", "distinct", "known-customers")

    catalog = load_catalog((tmp_path,))
    assert "parcels" in catalog.models
    assert catalog.routes["parcel-copies"].output_schema.key_field == "entityId"
    assert catalog.emissions["parcel-totals"].read_model == "parcels"
    output = run_module(tmp_path, "pytest", str(tmp_path / "tests"), "-q", "-p", "no:cacheprovider")
    assert "4 passed" in output
