"""Plots of answers, as specifications of Vega-Lite 5 with their data."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

Spec = dict[str, Any]
Rows = Sequence[tuple[Any, ...]]
COLOR, SIZE = "#3b6ea5", {"width": 620, "height": 240}
CONFIG = {
    "background": "white",
    "font": "sans-serif",
    "axis": {"grid": True, "gridColor": "#e5e5e5"},
    "view": {"stroke": None},
}


# Of the axis across, by the kind of its values: the order of the rows is kept, and times are in UTC wherever a plot is drawn.
LAYOUT: dict[str, Spec] = {"ordinal": {"sort": None}, "temporal": {"scale": {"type": "utc"}}}


def bars(title: str, columns: Sequence[str], rows: Rows) -> Spec:
    """Return a bar for each row, in their order: the first column across, the second up."""
    return _chart(title, columns, rows, {"type": "bar", "color": COLOR}, "ordinal")


def steps(title: str, columns: Sequence[str], rows: Rows) -> Spec:
    """Return a line that changes at the time in the first column to the value in the second, and stays until the next."""
    return _chart(
        title, columns, rows, {"type": "line", "interpolate": "step-after", "color": COLOR}, "temporal"
    )


def points(title: str, columns: Sequence[str], rows: Rows) -> Spec:
    """Return a point for each row: a time across, a value up, and a third column as the colour."""
    spec = _chart(title, columns, rows, {"type": "point", "filled": True, "size": 70}, "temporal")
    spec["encoding"]["color"] = {"field": columns[2], "type": "nominal"}
    return spec


def heat_map(title: str, columns: Sequence[str], rows: Rows) -> Spec:
    """Return a rectangle for each row: the first column across, the second down, the third as the colour."""
    spec = _chart(title, columns, rows, {"type": "rect"}, "ordinal")
    spec["encoding"]["y"] = {"field": columns[1], "type": "ordinal", "sort": None, "title": columns[1]}
    spec["encoding"]["color"] = {"field": columns[2], "type": "quantitative", "scale": {"scheme": "blues"}}
    return spec


def _chart(title: str, columns: Sequence[str], rows: Rows, mark: Spec, kind: str) -> Spec:
    across, up = columns[0], columns[1]
    layout = LAYOUT[kind]
    return {
        "title": title,
        "config": CONFIG,
        **SIZE,
        "data": {"values": [dict(zip(columns, map(_value, row), strict=False)) for row in rows]},
        "mark": mark,
        "encoding": {
            "x": {"field": across, "type": kind, "title": across, **layout},
            "y": {"field": up, "type": "quantitative", "title": up},
        },
    }


def _value(value: object) -> object:
    """Return a value for JSON. A plot needs no exact decimals."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value
