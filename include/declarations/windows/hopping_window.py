"""Hopping windows of event time: of a fixed size, one beginning at each multiple of the slide since 1970."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from include.errors import ReadModelError

SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
