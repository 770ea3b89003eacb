"""Hopping windows of event time, and the lookup of those of one item that begin in a range of time.

A window has a fixed size, and one begins at each multiple of the slide since 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote

from include.declarations.api import BOUND_PARAMETER, check_parameter, check_path
from include.declarations.kinds.endpoint import MAX_RECORDS, Endpoint, InvalidParameterError, Texts
from include.errors import ReadModelError

SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SINCE, UNTIL = "from", "to"


@dataclass(frozen=True)
class HoppingWindow:
    """The windows of a read model whose key is `<item>/<start of the window>`, such as `browser/2026-03-02T08:00:04Z`.

    size, slide: whole seconds. With a slide that is shorter than the size, an event is in several windows.
    """

    size: timedelta
    slide: timedelta

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        if self.slide < SECOND or self.size < self.slide or self.size % SECOND or self.slide % SECOND:
            raise ReadModelError(
                f"A window of {self.size} every {self.slide} is not valid: give whole seconds, and a size that is not below the slide."
            )

    @property
    def size_s(self) -> int:
        """The size in seconds."""
        return self.size // SECOND

    @property
    def slide_s(self) -> int:
        """The slide in seconds."""
        return self.slide // SECOND

    def starts_between(self, since: datetime, until: datetime) -> range:
        """Return the starts of all windows that begin at or after `since` and before `until`, ascending, in seconds since 1970.

        A range: its length costs nothing, however many windows there are.
        """
        first_s, end_s = (-((EPOCH - time) // SECOND) for time in (since, until))
        return range(-(-first_s // self.slide_s) * self.slide_s, end_s, self.slide_s)

    @staticmethod
    def key(item: str, start_s: int) -> bytes:
        """Return the key of an item's window that begins at this time, in seconds since 1970, in UTF-8."""
        start = EPOCH + timedelta(seconds=start_s)
        return f"{item}/{start.replace(tzinfo=None).isoformat()}Z".encode()


@dataclass(frozen=True)
class WindowLookup(Endpoint):
    """A lookup with its own path: `GET <path>?<parameter>=<item>&from=<time>&to=<time>` returns a JSON object with the array `windows`.

    It has an object with some fields of the state for each window of the item that begins at or after `from` and before `to`, and has
    events, ordered by time.

    parameter: the query parameter that gives the item. window: the windows; they make the keys of the read model. fields: names of
    fields of the state record. max_item_bytes: items with more bytes of UTF-8 are rejected. example: an item. as_array: the answer is the
    array itself, for clients that expect it; deprecated.
    """

    path: str
    parameter: str
    window: HoppingWindow
    fields: tuple[str, ...]
    max_item_bytes: int = 200
    example: str = "1"
    as_array: bool = False
    problems: ClassVar[tuple[str, ...]] = ("invalid-item", "invalid-from", "invalid-to", "range-too-long")

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        check_path(self.path)
        check_parameter(self.path, self.parameter)
        if self.parameter in {SINCE, UNTIL, BOUND_PARAMETER}:
            raise ReadModelError(
                f"The parameter {self.parameter!r} of {self.path} has another meaning: rename it."
            )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The item, and the bounds of the range."""
        return self.parameter, SINCE, UNTIL

    @property
    def deprecation(self) -> str:
        """Why the answer of this lookup will change, if it is the array itself."""
        return (
            "The response becomes an object, whose member `windows` is this array." if self.as_array else ""
        )

    def answer(self, records: Sequence[Texts]) -> str:
        """Return the JSON of the windows that have a record."""
        windows = super().answer(records)
        return windows if self.as_array else f'{{"windows":{windows}}}'

    def answer_schema(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the JSON Schema of the answer."""
        windows = {"type": "array", "items": record, "maxItems": MAX_RECORDS}
        if self.as_array:
            return windows
        return {"type": "object", "properties": {"windows": windows}, "required": ["windows"]}

    @property
    def required_parameters(self) -> tuple[str, ...]:
        """All of them."""
        return self.parameters

    def parameter_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the schemas of the item and the times."""
        time = {"type": "string", "format": "date-time"}
        item = {"type": "string", "minLength": 1, "maxLength": self.max_item_bytes, "example": self.example}
        about = f"Item of the windows. At most {self.max_item_bytes} bytes of UTF-8."
        since = f"Windows that begin at or after this time; at most {MAX_RECORDS} may begin in the range."
        return {
            self.parameter: {**item, "description": about},
            SINCE: {**time, "description": since, "example": "2026-03-02T08:00:00Z"},
            UNTIL: {
                **time,
                "description": "Windows that begin before this time.",
                "example": "2026-03-02T08:01:00Z",
            },
        }

    def keys(self, given: Mapping[str, str]) -> Sequence[bytes]:
        """Return the keys of the windows that begin in the range; raises InvalidParameterError, also for too many."""
        item = self._item(given.get(self.parameter))
        since, until = (_time(name, given.get(name)) for name in (SINCE, UNTIL))
        starts = self.window.starts_between(since, until)
        if len(starts) > MAX_RECORDS:
            raise InvalidParameterError(
                "range-too-long",
                f"From {since.isoformat()} to {until.isoformat()}, {len(starts):,} windows begin; at most {MAX_RECORDS} are allowed: shorten the range.",
            )
        return [self.window.key(item, start) for start in starts]

    def _item(self, text: str | None) -> str:
        if not text or len(text.encode()) > self.max_item_bytes:
            raise InvalidParameterError(
                "invalid-item",
                f"{self.parameter} is missing or too long: use {self.path}?{self.parameter}={quote(self.example)}"
                f"&{SINCE}=2026-03-02T08:00:00Z&{UNTIL}=2026-03-02T08:01:00Z.",
            )
        return text


def _time(name: str, text: str | None) -> datetime:
    """Return a time in UTC; raises InvalidParameterError, also for one that is in the year 0 or 10000 there."""
    try:
        time = datetime.fromisoformat(text or "")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidParameterError(
            f"invalid-{name}",
            f"{name} must be a time in ISO 8601 in the years 1 to 9999, such as 2026-03-02T08:00:00Z.",
        ) from error
