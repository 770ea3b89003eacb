"""A lookup of the windows of one item that begin in a range of time, declared as data."""

from dataclasses import dataclass

from include.declarations.api import BOUND_PARAMETER, check_parameter, check_path, require_fields
from include.declarations.read_model import ReadModel
from include.declarations.windows.hopping_window import HoppingWindow
from include.errors import ReadModelError

SINCE, UNTIL = "from", "to"


@dataclass(frozen=True)
class WindowLookup:
    """A lookup with its own path: `GET <path>?<parameter>=<item>&from=<time>&to=<time>` returns a JSON array, ordered by time.

    It has an object with some fields of the state for each window of the item that begins at or after `from` and before `to`, and has
    events.

    parameter: the query parameter that gives the item. window: the windows; they make the keys of the read model. fields: names of
    fields of the state record. max_item_bytes: items with more bytes of UTF-8 are rejected. example: an item.
    """

    path: str
    parameter: str
    window: HoppingWindow
    fields: tuple[str, ...]
    max_item_bytes: int = 200
    example: str = "1"

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        check_path(self.path)
        check_parameter(self.path, self.parameter)
        if self.parameter in {SINCE, UNTIL, BOUND_PARAMETER}:
            raise ReadModelError(
                f"The parameter {self.parameter!r} of {self.path} has another meaning: rename it."
            )

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError if it returns a field that the read model does not have."""
        require_fields(self.path, self.fields, model)
