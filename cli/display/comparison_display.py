"""Prints what a new version of a read model changes: totals, counts, and the largest changes by key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from cli.display.explanation_display import printable
from include.rebuild.comparison.report_text import number, percent, signed, state_value

if TYPE_CHECKING:
    from include.rebuild.comparison.comparison import Comparison, FieldChange, FieldTotals, VersionStates

LARGEST = 10


def print_comparison(console: Console, comparison: "Comparison", after: str = "") -> None:
    """Print a comparison. after: the title of the new version; by default its number."""
    console.print(_totals(comparison, after or f"v{comparison.after.number}"))
    console.print(
        f"{comparison.changed:,} keys change, {comparison.added:,} are new, {comparison.gone:,} are gone: "
        f"{percent(comparison.changed_percent)} of {comparison.all_keys:,}.",
        highlight=False,
    )
    if comparison.largest:
        console.print(_largest(comparison))
    for note in comparison.notes:
        console.print(note, style="yellow", highlight=False, markup=False)


def print_exceeded(console: Console, exceeded: Sequence[str]) -> None:
    """Print which thresholds are exceeded, if any."""
    for sentence in exceeded:
        console.print(f"Threshold exceeded: {sentence}", style="yellow", highlight=False, markup=False)


def _totals(comparison: "Comparison", after: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(comparison.read_model)
    before = "before" if comparison.before is None else f"live v{comparison.before.number}"
    for column in (before, after, "change"):
        table.add_column(column, justify="right")
    old, new = comparison.before, comparison.after
    starts = (_starts(old), _starts(new))
    if starts[0] != starts[1]:
        table.add_row("starts at", *starts)
    for title, left, right in (
        ("events folded", old.events if old else 0, new.events),
        ("keys", old.keys if old else 0, new.keys),
    ):
        table.add_row(title, f"{left:,}", f"{right:,}", f"{right - left:+,}" if right != left else "")
    for name, totals in comparison.fields.items():
        table.add_row(f"sum of {name}", number(totals.before), number(totals.after), _net(totals))
        if any(totals.below_zero):
            below = (f"{keys:,}" for keys in totals.below_zero)
            table.add_row(f"{name} below zero", *below, "")
    return table


def _net(totals: "FieldTotals") -> str:
    if not totals.difference:
        return ""
    share = "" if totals.difference_percent is None else f" ({percent(totals.difference_percent, sign=True)})"
    return f"{signed(totals.difference)}{share}"


def _starts(side: "VersionStates | None") -> str:
    starts = side.starts if side else {}
    return ", ".join(f"{partition}:{offset:,}" for partition, offset in starts.items()) or "the first event"


def _largest(comparison: "Comparison") -> Table:
    changes = Table(
        box=None, header_style="bold", padding=(0, 2, 0, 0), title="largest changes", title_justify="left"
    )
    names = list(comparison.largest[0].fields)
    for column in ("key", "events", *names):
        changes.add_column(column, overflow="fold")
    for change in comparison.largest[:LARGEST]:
        cells = [_arrow(change.events, is_number=True)]
        cells += [_arrow(change.fields[name], is_number=name in comparison.fields) for name in names]
        changes.add_row(*(printable(cell) for cell in (change.key, *cells)))
    return changes


def _arrow(change: "FieldChange", *, is_number: bool) -> str:
    before, after = (
        "-" if side is None else state_value(side, is_number) for side in (change.before, change.after)
    )
    return before if before == after else f"{before} -> {after}"
