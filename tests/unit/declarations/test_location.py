"""A read model declares which fields of its state contain the location of an item."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from include.declarations.api import Location
from include.declarations.load import load_catalog, read_model
from include.declarations.read_model import StateField, decimal_type
from tests.support.declarations.refusal import refusal

MODEL = """
from include.declarations.api import Location
from include.declarations.read_model import ReadModel, StateField, decimal_type
READ_MODEL = ReadModel("buoys", "buoys", ("Seen",), lambda: None, (
    StateField("lat", "double"), StateField("lon", decimal_type(9, 6)), StateField("name", "string")), {1: dict})
"""


def declare(folder: Path, declaration: str) -> None:
    (folder / "buoys.py").write_text(MODEL + declaration)
    (folder / "Seen.avsc").write_text('{"type": "record", "name": "Seen", "fields": []}')


def location_of(folder: Path, declaration: str) -> Location | None:
    declare(folder, declaration)
    return next(api.location for api in load_catalog((folder,)).apis if api.model.name == "buoys")


def test_a_location_is_declared_in_a_module_of_the_read_model(tmp_path: Path) -> None:
    assert location_of(tmp_path, 'LOCATION = Location("lat", "lon")') == Location("lat", "lon")


def test_a_location_may_be_null() -> None:
    fields = (StateField("lat", ["null", "double"]), StateField("lon", ["null", decimal_type(9, 6)]))

    Location("lat", "lon").validate_against(replace(read_model("balance"), state=fields))


@pytest.mark.parametrize("declaration", ["", "LOCATION = None"])
def test_a_read_model_need_not_have_a_location(tmp_path: Path, declaration: str) -> None:
    assert location_of(tmp_path, declaration) is None


@pytest.mark.parametrize(
    ("declaration", "error"),
    [
        ('LOCATION = Location("lat", "longitude")', "'longitude', which is no field of its state"),
        ('LOCATION = Location("name", "lon")', "'name', which is string"),
        ('LOCATION = ("lat", "lon")', "LOCATION of include.read_models.buoys must be of type Location"),
    ],
)
def test_an_invalid_location_is_refused(tmp_path: Path, declaration: str, error: str) -> None:
    declare(tmp_path, declaration)

    assert error in refusal(tmp_path)


def test_the_location_of_a_state_is_in_degrees() -> None:
    location = Location("lat", "lon")

    assert location.of({"lat": 52.5, "lon": Decimal("13.4")}) == (52.5, 13.4)
    assert location.of({"lat": 52.5}) is None
    assert location.of({"lat": 52.5, "lon": None}) is None
