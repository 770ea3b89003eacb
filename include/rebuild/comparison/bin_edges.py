"""The bins of a histogram of changes: steps of 1, 2, 5 of each power of ten, or of powers of ten where there would be too many.

Changes of a cent and of a million stand in one picture, and the edges do not depend on single keys.
"""

from decimal import Decimal

# Above this number of powers of ten, a bin is a whole one.
FINE_DECADES = 6
# Changes that are smaller than the largest one by more powers of ten share the first bin.
MOST_DECADES = 12
STEPS = (Decimal(1), Decimal(2), Decimal(5))


def edges(smallest: Decimal, largest: Decimal) -> tuple[Decimal, ...]:
    """Return the edges, in ascending order, of bins for changes from `smallest` to `largest`, without their signs; both above 0.

    Bin i contains the changes from edge i to below edge i + 1. The first contains all smaller ones, too.
    """
    top = largest.adjusted()
    bottom = max(smallest.adjusted(), top - MOST_DECADES)
    steps = STEPS if top - bottom < FINE_DECADES else STEPS[:1]
    powers = range(bottom, top + 1)
    inner = [step.scaleb(power) for power in powers for step in steps]
    inner = [edge for edge in inner if edge <= largest]
    first = max((edge for edge in inner if edge <= smallest), default=inner[0])
    found = [edge for edge in inner if edge >= first]
    return (*found, _next(found[-1], steps))


def _next(edge: Decimal, steps: tuple[Decimal, ...]) -> Decimal:
    """Return the edge after this one."""
    power = edge.adjusted()
    return next((e for step in steps if (e := step.scaleb(power)) > edge), Decimal(1).scaleb(power + 1))


def plain(edge: Decimal) -> str:
    """Return an edge as text without an exponent."""
    return f"{edge.normalize():f}"
