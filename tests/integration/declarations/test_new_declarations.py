"""What `./foldlake new` writes works as it is: the tests that come with a read model, a route and an emission pass."""

from pathlib import Path

import pytest

from include.declarations.load import load_catalog
from tests.integration.declarations.run_module import run_module


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

    catalog = load_catalog((tmp_path,))
    assert "parcels" in catalog.models
    assert catalog.routes["parcel-copies"].output_schema.key_field == "entityId"
    assert catalog.emissions["parcel-totals"].read_model == "parcels"
    output = run_module(tmp_path, "pytest", str(tmp_path / "tests"), "-q", "-p", "no:cacheprovider")
    assert "3 passed" in output
