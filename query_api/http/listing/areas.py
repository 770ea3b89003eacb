"""The parameter `within`: the items in a box, of the read models that declare a location."""

from collections.abc import Iterable

from include.declarations.api import ReadModelApi
from query_api.http.problems import ProblemError
from query_api.lookup.bounding_box import Area, BoundingBox, InvalidBoxError

MAX_SHOWN = 100


class Areas:
    """Reads the parameter. One per HTTP worker process."""

    def __init__(self, apis: Iterable[ReadModelApi]) -> None:
        self.locations = {api.model.name: api.location for api in apis if api.location is not None}

    def parse(self, read_model: str, text: str | None) -> Area | None:
        """Return the area that the parameter's value describes, None without one; raises ProblemError."""
        if text is None:
            return None
        location = self.locations.get(read_model)
        if location is None:
            known = ", ".join(sorted(self.locations)) or "none"
            detail = f"{read_model} declares no location, so it takes no `within`. Read models with a location: {known}."
            raise ProblemError(400, "no-location", detail)
        try:
            return Area(location, BoundingBox.parse(text))
        except InvalidBoxError as error:
            detail = f"within is {text[:MAX_SHOWN]!r}: {error}."
            raise ProblemError(400, "invalid-within", detail) from error
