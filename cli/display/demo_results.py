"""What the demos of systems have in common: a table of their branches, and the append of events to an event table."""

from collections.abc import Iterable
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from cli.display.run_display import RunToFollow, trigger_and_follow
from include.airflow.names import COMPACTION_DAG
from include.errors import FoldlakeError
from include.settings import Settings


class AppendFailedError(FoldlakeError):
    """Events were not appended to an event table."""


class BranchResult(NamedTuple):
    """A branch or a store, and its comparison: the number of records found, and what differs; empty if nothing does."""

    name: str
    kind: str
    output: str
    found: int
    differences: str


def branch_table(results: Iterable[BranchResult]) -> Table:
    """Return a table of the results; it fits into 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for column in ("branch", "kind", "output"):
        table.add_column(column, no_wrap=True)
    table.add_column("records", justify="right", no_wrap=True)
    table.add_column("result")
    for one in results:
        verdict = f"[red]{one.differences}" if one.differences else "[green]exact"
        table.add_row(one.name, one.kind, one.output, f"{one.found:,}", verdict)
    return table


def append_to_event_table(console: Console, settings: Settings, name: str) -> None:
    """Run Airflow's DAG `compaction` for an event table, and show its progress. Raises AppendFailedError."""
    conf = {"read_model": name, "optimize": False}
    wanted = RunToFollow(f"append to lake/{name}", COMPACTION_DAG, conf, until=[f"append_{name}"])
    run, succeeded = trigger_and_follow(console, settings, wanted)
    if not succeeded:
        raise AppendFailedError(f"Nothing was appended to lake/{name}. Hint: see the task's log, {run.url}.")
