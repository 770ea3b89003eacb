"""Prints what a new version of a read model changes: totals, counts, and the largest changes by key.

Of a followed rebuild, as soon as each of its versions has been compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cli.display.explanation_display import printable
from include.airflow.dag_run import DagRun, RunEvent, TaskChanged
from include.errors import FoldlakeError
from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import Comparison, FieldChange, FieldTotals, VersionStates
from include.rebuild.comparison.report_text import number, percent, signed, state_value
from include.rebuild.comparison.thresholds import exceeded, thresholds_of
from include.rebuild.stage import report_id
from include.rebuild.stages.build import COMPARE
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.words import plural

LARGEST = 10


def print_comparison(console: Console, comparison: Comparison, after: str = "") -> None:
    """Print a comparison. after: the title of the new version; by default its number."""
    console.print(_totals(comparison, after or f"v{comparison.after.number}"))
    console.print(
        f"{plural(comparison.changed, 'key')} changed, {comparison.added:,} new, {comparison.gone:,} gone: "
        f"{percent(comparison.changed_percent)} of {comparison.all_keys:,}.",
        highlight=False,
    )
    if comparison.largest:
        console.print(_largest(comparison))
    for note in comparison.notes:
        console.print(note, style="yellow", highlight=False, markup=False)


def print_exceeded(console: Console, sentences: Sequence[str]) -> None:
    """Print which thresholds are exceeded, if any."""
    for sentence in sentences:
        console.print(f"Threshold exceeded: {sentence}", style="yellow", highlight=False, markup=False)


def _totals(comparison: Comparison, after: str) -> Table:
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


def _net(totals: FieldTotals) -> str:
    if not totals.difference:
        return ""
    share = "" if totals.difference_percent is None else f" ({percent(totals.difference_percent, sign=True)})"
    return f"{signed(totals.difference)}{share}"


def _starts(side: VersionStates | None) -> str:
    starts = side.starts if side else {}
    return ", ".join(f"{partition}:{offset:,}" for partition, offset in starts.items()) or "the first event"


def _largest(comparison: Comparison) -> Table:
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


def _arrow(change: FieldChange, *, is_number: bool) -> str:
    before, after = (
        "-" if side is None else state_value(side, is_number) for side in (change.before, change.after)
    )
    return before if before == after else f"{before} -> {after}"


class ShownChanges:
    """Shows each comparison of one run once. exceeded: whether one of them exceeds a threshold of the request."""

    def __init__(self, console: Console, settings: Settings, conf: Mapping[str, Any]) -> None:
        self.exceeded = False
        self._console = console
        self._settings = settings
        self._conf = conf
        self._thresholds = thresholds_of(conf)

    def show_if_compared(self, run: DagRun, event: RunEvent) -> None:
        """Show a comparison if the event is that its task has succeeded."""
        match event:
            case TaskChanged(task) if task.state == "success":
                read_model, _, stage = task.task_id.rpartition(".")
                if stage == COMPARE.name:
                    self._show_of_run(run.run_id, read_model or str(self._conf["read_model"]))

    def _show_of_run(self, airflow_run: str, read_model: str) -> None:
        try:
            self._show(airflow_run, read_model)
        except FoldlakeError as error:
            # The rebuild goes on.
            self._console.print(f"The changes cannot be shown: {error}", style="yellow", markup=False)

    def _show(self, airflow_run: str, read_model: str) -> None:
        with VersionRegistry(self._settings.kafka_connection) as registry:
            record = record_of(registry, read_model)
        # A dry run may have abandoned it already.
        version = record.of_run(airflow_run)
        if version is None:
            return
        run_id = report_id(read_model, version.number)
        comparison = report.read(self._settings.home, run_id)
        if comparison is None:
            return
        print_comparison(self._console, comparison)
        found = exceeded(self._thresholds, comparison)
        self.exceeded |= bool(found)
        print_exceeded(self._console, found)
        url = report.report_url(self._settings.reports_base_url, run_id)
        self._console.print(f"All changes: {url}", highlight=False, soft_wrap=True)
