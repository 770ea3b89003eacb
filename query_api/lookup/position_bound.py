"""How fresh an answer has to be: the position that addFunds returned, handed back by the one who wants to see it."""

from dataclasses import dataclass

MAX_WAIT_S = 1.0
# 19 digits hold every offset that Kafka has.
MAX_DIGITS = 19


@dataclass(frozen=True)
class PositionBound:
    """The event at this offset of the key's source partition must be folded into the answer.

    Events of one key are folded in their order, so the key's own record says whether it is.
    """

    min_offset: int

    def is_met_by(self, source_offset: int) -> bool:
        """Whether a record whose newest event stands at `source_offset` contains that event."""
        return source_offset >= self.min_offset

    @classmethod
    def parse(cls, text: str | None) -> "PositionBound | None":
        """Read a bound from a request; None or empty is no bound. Raises ValueError."""
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
            message = f"minOffset must be a whole number, 0 or more; it is {text[:40]!r}."
            raise ValueError(message)
        return cls(int(text))
