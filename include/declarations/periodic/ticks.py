"""The ticks of a periodic emission: the multiples of its interval since 1970, by the clock of the machine that writes."""

from datetime import timedelta

from include.errors import ReadModelError

SHORTEST, LONGEST = timedelta(seconds=0.5), timedelta(days=1)


def require_interval(declaration: str, interval: object) -> None:
    """Raise ReadModelError unless it is an interval within the allowed bounds; `declaration` names what has it."""
    if not isinstance(interval, timedelta) or not SHORTEST <= interval <= LONGEST:
        raise ReadModelError(
            f"every of {declaration} is {interval!r}: allowed: None, or a timedelta from 0.5 s to 1 day."
        )


def tick_at(now_ms: int, interval_ms: int) -> int:
    """Return the newest tick that is not after this time, in milliseconds since 1970."""
    return now_ms - now_ms % interval_ms


def next_tick(now_ms: int, interval_ms: int, written_ms: int | None) -> int:
    """Return the next tick to write, in milliseconds since 1970: the first that has not begun and is after the newest written one.

    Ticks that were missed, as while no driver ran, are not made up for: what the states were then is not known any more.
    written_ms: the newest written tick; None if there is none.
    """
    upcoming = tick_at(now_ms, interval_ms) + interval_ms
    return upcoming if written_ms is None else max(upcoming, tick_at(written_ms, interval_ms) + interval_ms)
