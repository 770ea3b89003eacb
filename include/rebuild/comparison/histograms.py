"""A histogram of changes as an SVG picture, which needs no script and no other file."""

from collections.abc import Sequence
from decimal import Decimal
from html import escape
from itertools import pairwise

from include.rebuild.comparison.comparison import Bin
from include.rebuild.comparison.report_text import number
from include.words import plural

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 58
# Two colours that people with colour blindness tell apart, readable on white and on black.
DECREASE, INCREASE = "#d9730d", "#2f81f7"
MOST_LABELS = 12
FILE_STYLE = "font-family:system-ui,sans-serif;color:#24292f;background:#ffffff"


def histogram_svg(bins: Sequence[Bin], title: str, *, is_file: bool = False) -> str:
    """Return the picture; empty without bins.

    title: what is shown, for screen readers. is_file: the picture has a background of its own, instead of the colours of a page around it.
    """
    if not bins:
        return ""
    highest = max(one.keys for one in bins)
    step = (WIDTH - LEFT - RIGHT) / len(bins)
    parts = [*_grid(highest), *_bars(bins, highest, step), *_labels(bins, step)]
    # A picture that is shown on its own has a size of its own.
    style = f' width="{WIDTH}" height="{HEIGHT}" style="{FILE_STYLE}"' if is_file else ""
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>' if is_file else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"{style} font-size="12" fill="currentColor">'
        f"<title>{escape(title)}</title>{background}{''.join(parts)}</svg>"
    )


def _grid(highest: int) -> list[str]:
    """Return a line and a label at the bottom, in the middle and at the height of the highest bar."""
    parts = []
    for value in sorted({0, highest // 2, highest}):
        y = _y(value, highest)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-opacity=".25"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,}</text>'
        )
    return parts


def _bars(bins: Sequence[Bin], highest: int, step: float) -> list[str]:
    parts = []
    for i, one in enumerate(bins):
        y = _y(one.keys, highest)
        # A bin with few keys next to one with many is still seen.
        height = max(HEIGHT - BOTTOM - y, 1.5 if one.keys else 0)
        color = DECREASE if _is_decrease(one) else INCREASE
        parts.append(
            f'<rect x="{LEFT + i * step + 1:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" width="{max(step - 2, 1):.1f}" height="{height:.1f}" '
            f'fill="{color}"><title>{escape(describe_bin(one))}</title></rect>'
        )
    return parts


def _labels(bins: Sequence[Bin], step: float) -> list[str]:
    """Return the labels of the edges, and the title of the axis."""
    # Between a decrease and an increase is 0, whatever the smallest of both is.
    signs = [_is_decrease(one) for one in bins]
    inner = ("0" if a and not b else one.high for one, (a, b) in zip(bins, pairwise(signs), strict=False))
    edges = [bins[0].low, *inner, bins[-1].high]
    every = -(-len(edges) // MOST_LABELS)
    y = HEIGHT - BOTTOM + 18
    parts = [
        f'<text x="{LEFT + i * step:.1f}" y="{y}" text-anchor="middle">{escape(_short(edge))}</text>'
        for i, edge in enumerate(edges)
        if i % every == 0
    ]
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle">change of a key</text>')
    return parts


def describe_bin(one: Bin) -> str:
    """Return a bin as text."""
    return f"{number(one.low)} to {number(one.high)}: {plural(one.keys, 'key')}"


def _is_decrease(one: Bin) -> bool:
    return one.low.startswith("-")


def _short(edge: str) -> str:
    """Return an edge with its sign, and a unit instead of many zeros."""
    value = float(edge)
    sign = "+" if value > 0 else "-" if value < 0 else ""
    size = abs(value)
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if factor <= size < factor * 1e3:
            return f"{sign}{size / factor:g}{unit}"
    return f"{sign}{size:g}"


def _y(value: int, highest: int) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / highest)


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
