"""An explanation of a key in the terminal."""

from collections.abc import Collection, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from include.versions.explanation import ExplainedVersion, Explanation, field_texts, steps
from include.words import plural

NO_RECORD = "[dim]no record[/dim]"


def print_explanation(console: Console, found: Explanation) -> None:
    """Print what each version gives for the key, and its events in order with the state after each."""
    console.print(f"[bold]{printable(found.key)}[/bold] in {found.read_model} {version_name(found.shown)}")
    console.print(f"[dim]{escape(what_was_read(found))}[/dim]")
    if found.difference:
        console.print(f"[bold red]Fault:[/bold red] {printable(found.difference)}")
    console.print(_versions(found))
    if found.events:
        console.print(_events(found))
    if found.masked:
        names = ", ".join(found.masked)
        console.print(f"[dim]Left out, because they are personal: {names}. --personal shows them.[/dim]")
    if found.leaves:
        console.print(f"[dim]{found.leaves}[/dim]")


def printable(text: str) -> str:
    """Return a text for the terminal, in which control characters, which could move the cursor or hide text, are escapes."""
    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))


def version_name(one: ExplainedVersion) -> str:
    """Return the name of a version with its stage and fold."""
    if one.version is None:
        return f"fold {one.fold_revision}, no version yet"
    return f"v{one.version} ({one.stage}, fold {one.fold_revision})"


def what_was_read(found: Explanation) -> str:
    """Return which part of the log the events were found in."""
    parts = ", ".join(
        f"partition {p} from offset {start:,} to {found.read_until[p] - 1:,}"
        for p, start in found.read_from.items()
    )
    where = f": {parts}" if parts else ""
    return (
        f"{plural(found.shown.event_count, 'event')} of {found.shown.source_topic}, among {plural(found.records_read, 'record')} read"
        f"{where}. Dead letters do not count."
    )


def _versions(found: Explanation) -> Table:
    table = _table("version", "events", "state")
    for one in (found.shown, *found.others):
        state = NO_RECORD if one.state is None else _fields(field_texts(one.state))
        table.add_row(version_name(one), f"{one.event_count:,}", state)
    return table


def _events(found: Explanation) -> Table:
    table = _table("#", "offset", "occurred on", "event", "state after it")
    for step in steps(found):
        event = step.event
        if step.skipped:
            table.add_row("", "", "", f"[dim]{plural(step.skipped, 'event')} not shown, but folded[/dim]", "")
        table.add_row(
            f"{event.number:,}",
            f"{event.partition}:{event.offset}",
            event.occurred_on.replace("T", " "),
            f"{event.event_type} {_fields(step.fields)}",
            NO_RECORD if event.state is None else _fields(step.state, step.changed),
        )
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in ("#", "events") else "left", overflow="fold")
    return table


def _fields(fields: Mapping[str, str], changed: Collection[str] = ()) -> str:
    texts = {name: printable(f"{name}={value}") for name, value in fields.items()}
    return " ".join(f"[bold]{text}[/bold]" if name in changed else text for name, text in texts.items())
