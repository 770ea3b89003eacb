"""Changelogs of one key, each with the record that is the key's newest: every reader of a changelog must find it (include.position.supersedes)."""

from dataclasses import dataclass
from typing import NamedTuple


class Entry(NamedTuple):
    """A state record with its event count, or the removal of the key after so many events."""

    event_count: int
    is_removal: bool = False


@dataclass(frozen=True)
class ChangelogCase:
    """A changelog of one key.

    newest: index of the key's newest record; None if the key is removed.
    newest_if_forgotten: the same for a reader that does not remember how many events a removed key had.
    """

    name: str
    log: tuple[Entry, ...]
    newest: int | None
    newest_if_forgotten: int | None

    def __str__(self) -> str:
        """Return the name, which pytest shows."""
        return self.name


def state(event_count: int) -> Entry:
    """Return a state record."""
    return Entry(event_count)


def removal(event_count: int) -> Entry:
    """Return a removal."""
    return Entry(event_count, is_removal=True)


def _case(name: str, *log: Entry, newest: int | None, forgotten: int | None = -1) -> ChangelogCase:
    return ChangelogCase(name, log, newest, newest if forgotten == -1 else forgotten)


CASES = (
    _case("one record", state(1), newest=0),
    _case("more events", state(1), state(2), newest=1),
    _case("an older record repeated", state(3), state(2), newest=0),
    _case("an equal record repeated", state(2), state(2), newest=1),
    _case("two records repeated", state(1), state(2), state(3), state(2), state(3), newest=4),
    _case("repeated in part", state(1), state(2), state(3), state(1), state(2), newest=2),
    _case("removed", state(2), removal(2), newest=None),
    _case("removed twice", state(2), removal(2), removal(2), newest=None),
    _case("removed without a record", removal(2), newest=None),
    _case("an older record before its removal", state(3), state(1), removal(3), newest=None),
    _case("created again", state(2), removal(2), state(3), newest=2),
    _case("created again, more events", state(2), removal(2), state(3), state(4), newest=3),
    _case("created again, older repeated", state(2), removal(2), state(4), state(3), newest=2),
    _case("created again, from before repeated", state(2), removal(2), state(3), state(1), newest=2),
    _case("created again and removed", state(2), removal(2), state(3), removal(3), newest=None),
    _case("removal repeated hides the newer record", state(2), removal(2), state(3), removal(2), newest=None),
    _case(
        "removal and newer record repeated", state(2), removal(2), state(3), removal(2), state(3), newest=4
    ),
    _case("equal record after the removal", state(2), removal(2), state(2), newest=None, forgotten=2),
    _case("older record after the removal", state(2), removal(2), state(1), newest=None, forgotten=2),
    _case("records and removal repeated", state(1), state(2), removal(2), state(1), removal(2), newest=None),
)
