"""The table of the medians of all runs: a line for each figure, a column for each engine."""

from collections.abc import Mapping, Sequence
from statistics import median

NAME_WIDTH = 32
COLUMN_WIDTH = 20
# From these values on, a figure has one decimal, and none.
ONE_DECIMAL, NO_DECIMAL = 10, 100


def table(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> list[str]:
    """Return the lines of the table; `runs` has the figures of each run by engine."""
    names = dict.fromkeys(name for figures in runs.values() for run in figures for name in run)
    lines = ["median".ljust(NAME_WIDTH) + "".join(engine.rjust(COLUMN_WIDTH) for engine in runs)]
    for name in names:
        measured = [[run[name] for run in figures if name in run] for figures in runs.values()]
        cells = [_text(median(values)) if values else "-" for values in measured]
        lines.append(name.ljust(NAME_WIDTH) + "".join(cell.rjust(COLUMN_WIDTH) for cell in cells))
    return lines


def line(figures: Mapping[str, float]) -> str:
    """Return the figures of one measurement."""
    return ", ".join(f"{name} {_text(value)}" for name, value in figures.items())


def _text(value: float) -> str:
    decimals = 0 if value >= NO_DECIMAL or value == 0 else 1 if value >= ONE_DECIMAL else 2
    return f"{value:,.{decimals}f}"
