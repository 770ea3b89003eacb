"""The position of a stream of changes, which is also the id of its events: a client that returns it continues after that event."""

import re
from dataclasses import dataclass

# Longer than any topic's: 1,024 partitions with offsets of 20 digits.
MAX_CHARACTERS = 32_768
TEXT = re.compile(r"(\d{1,9})\.(\d{1,12})\.(\d{1,19}(?:-\d{1,19})*)", re.ASCII)


class InvalidPositionError(ValueError):
    """The text is not the id of an event."""


@dataclass(frozen=True)
class StreamPosition:
    """How far a stream has read the changelog of a version.

    at_s: Unix time in seconds at which this was its position. offsets: of each partition, the first offset that was not read.
    """

    version: int
    at_s: int
    offsets: tuple[int, ...]

    @property
    def text(self) -> str:
        """The position as text, such as `1.1790000000.12-0-7-3`."""
        return position_text(self.version, self.at_s, self.offsets)

    @classmethod
    def parse(cls, text: str) -> "StreamPosition":
        """Read the text form; raises InvalidPositionError."""
        matched = TEXT.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
        if matched is None:
            raise InvalidPositionError(text[:100])
        offsets = tuple(int(offset) for offset in matched[3].split("-"))
        return cls(int(matched[1]), int(matched[2]), offsets)


def position_text(version: int, at_s: int, offsets: tuple[int, ...]) -> str:
    """Return the text form of a position."""
    return f"{version}.{at_s}.{'-'.join(map(str, offsets))}"
