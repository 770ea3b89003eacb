"""A box of latitudes and longitudes, which selects the items inside it."""

import re
from dataclasses import dataclass
from decimal import Decimal

from include.declarations.api import Location

# Degrees in plain decimals.
NUMBER = re.compile(r"-?\d{1,3}(\.\d{1,17})?", re.ASCII)
MAX_LATITUDE, MAX_LONGITUDE = 90.0, 180.0


class InvalidBoxError(ValueError):
    """The text is no box; the message says why."""


@dataclass(frozen=True)
class BoundingBox:
    """All points with a latitude and a longitude within these limits, in degrees, the limits included.

    If `west` is greater than `east`, the box crosses the date line: it goes from `west` eastwards over 180° to `east`.
    """

    south: float
    west: float
    north: float
    east: float

    @classmethod
    def parse(cls, text: str) -> "BoundingBox":
        """Read `minLat,minLon,maxLat,maxLon`; raises InvalidBoxError."""
        parts = text.split(",")
        if len(parts) != 4 or not all(NUMBER.fullmatch(part) for part in parts):  # noqa: PLR2004 - the limits
            raise InvalidBoxError("it must be minLat,minLon,maxLat,maxLon, four numbers in degrees")
        south, west, north, east = (float(part) for part in parts)
        if max(abs(south), abs(north)) > MAX_LATITUDE:
            raise InvalidBoxError("latitudes are from -90 to 90")
        if max(abs(west), abs(east)) > MAX_LONGITUDE:
            raise InvalidBoxError("longitudes are from -180 to 180")
        if south > north:
            raise InvalidBoxError(f"minLat {parts[0]} is greater than maxLat {parts[2]}")
        return cls(south, west, north, east)

    @property
    def text(self) -> str:
        """The form that `parse` reads."""
        return ",".join(
            format(Decimal(repr(limit)), "f").removesuffix(".0")
            for limit in (self.south, self.west, self.north, self.east)
        )

    def contains(self, point: tuple[float, float] | None) -> bool:
        """Whether a point, (latitude, longitude), is in the box; an item without a location is not."""
        if point is None:
            return False
        latitude, longitude = point
        if not self.south <= latitude <= self.north:
            return False
        if self.west <= self.east:
            return self.west <= longitude <= self.east
        return longitude >= self.west or longitude <= self.east


@dataclass(frozen=True)
class Area:
    """The items of a read model in a box.

    location: the fields of its state that contain the location.
    """

    location: Location
    box: BoundingBox

    def has(self, state: dict[str, object]) -> bool:
        """Whether an item with this state is in the box."""
        return self.box.contains(self.location.of(state))
