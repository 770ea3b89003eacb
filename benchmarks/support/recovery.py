"""How long a process that starts on live traffic is behind, and the latency afterwards.

Both take (produced, seen) of each event, in seconds of the Unix clock.
"""

from collections.abc import Sequence

from benchmarks.support.report import percentile

# Current from the first second of which all events are seen within this time.
CURRENT_MS = 1_000.0
WINDOW_S = 10


def current_after_s(matched: Sequence[tuple[float, float]], launched_s: float) -> float:
    """Return the seconds from the launch until all events of every further second are seen within CURRENT_MS."""
    late = [sent_s for sent_s, seen_s in matched if (seen_s - sent_s) * 1000 > CURRENT_MS]
    return max((sent_s + 1 for sent_s in late), default=launched_s) - launched_s


def window_p99_ms(matched: Sequence[tuple[float, float]], launched_s: float) -> list[float]:
    """Return the p99 of the events of each window of WINDOW_S, by the time at which they were produced."""
    by_window: dict[int, list[float]] = {}
    for sent_s, seen_s in matched:
        if sent_s >= launched_s:
            by_window.setdefault(int((sent_s - launched_s) // WINDOW_S), []).append((seen_s - sent_s) * 1000)
    return [percentile(sorted(by_window[window]), 0.99) for window in sorted(by_window)]
