"""The caller's bound on the age of an answer: the parameter `minOffset`, an offset that a command has returned."""

from dataclasses import dataclass

from include.position import parse_offset

# How long a lookup waits for a record to reach its bound.
MAX_WAIT_S = 1.0


@dataclass(frozen=True)
class PositionBound:
    """The event at this offset of the key's source partition must be folded into the answer.

    All events of a key are in one partition and are folded in order, so the offset in the key's own record is
    sufficient (docs/decisions/0006).
    client: the address that the request came from, which limits how many of its lookups wait.
    """

    min_offset: int
    client: str = ""

    def is_met_by(self, source_offset: int) -> bool:
        """Whether a record with this offset includes the event. Called by every lookup, so it creates no `Position`."""
        return source_offset >= self.min_offset

    @classmethod
    def parse(cls, text: str | None, client: str = "") -> "PositionBound | None":
        """Read a bound from a request; None or empty is no bound. Raises ValueError."""
        if not text:
            return None
        try:
            return cls(parse_offset(text), client)
        except ValueError as error:
            message = f"minOffset must be a whole number, 0 or more; it is {text[:40]!r}."
            raise ValueError(message) from error
