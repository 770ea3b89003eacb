"""Hopping windows of event time: of a fixed size, one beginning at each multiple of the slide since 1970."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from include.errors import ReadModelError

SECOND = timedelta(seconds=1)
KEY_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


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

    def starts_between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the starts of all windows that begin at or after `since` and before `until`, ascending."""
        first_s = -(-since.timestamp() // self.slide_s) * self.slide_s
        number = max(0, -int(-(until.timestamp() - first_s) // self.slide_s))
        return [datetime.fromtimestamp(first_s + i * self.slide_s, UTC) for i in range(number)]

    @staticmethod
    def key(item: str, start: datetime) -> bytes:
        """Return the key of an item's window that begins at this time, in UTF-8."""
        return f"{item}/{start.astimezone(UTC):{KEY_FORMAT}}".encode()
