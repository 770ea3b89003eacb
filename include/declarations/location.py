"""Where the items of a read model are: the state fields that contain an item's latitude and longitude."""

from collections.abc import Mapping
from dataclasses import dataclass

from include.declarations.event_types.field_types import without_null
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError

NUMBERS = ("double", "float")


@dataclass(frozen=True)
class Location:
    """Names of two state fields, in degrees (WGS 84): latitude, -90 to 90, and longitude, -180 to 180.

    Their Avro type is double, float, or a decimal.
    """

    latitude: str
    longitude: str

    def of(self, state: Mapping[str, object]) -> tuple[float, float] | None:
        """Return (latitude, longitude) of a decoded state; None if it lacks one of them."""
        latitude, longitude = state.get(self.latitude), state.get(self.longitude)
        if latitude is None or longitude is None:
            return None
        return float(latitude), float(longitude)  # type: ignore[arg-type]  # `validate_against` has seen their types

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError unless both fields are numbers of the read model's state."""
        types = {field.name: field.avro_type for field in model.state}
        for name in (self.latitude, self.longitude):
            found = without_null(types.get(name))
            if found not in NUMBERS and not (
                isinstance(found, dict) and found.get("logicalType") == "decimal"
            ):
                raise ReadModelError(
                    f"The location of {model.name} is in {name!r}, which is {'no field of its state' if found is None else found}: "
                    f"use state fields of the type {', '.join(NUMBERS)} or decimal."
                )
