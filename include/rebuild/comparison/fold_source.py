"""The source of a fold, and the difference between the folds of two revisions."""

import difflib
import functools
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from include.declarations.rules.expression import Fields


@dataclass(frozen=True)
class FoldText:
    """The fold of a revision. code: its source in Python; empty if it cannot be read.

    columns: what Spark computes for each field of the state, a line each.
    """

    revision: int
    code: str
    columns: tuple[str, ...] = ()


class LineKind(StrEnum):
    """What has become of a line."""

    KEPT = " "
    ADDED = "+"
    REMOVED = "-"


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference, without its mark."""

    kind: LineKind
    text: str

    def __str__(self) -> str:
        """Return the line as in a unified diff."""
        return f"{self.kind.value}{self.text}"


def fold_code(fold: Fields) -> str:
    """Return the source of a fold: of SQL, a line for each field. Empty if it has none, such as a function that was built at run time."""
    if isinstance(fold, Mapping):
        return "\n".join(f"{name} = {text}" for name, text in fold.items())
    while isinstance(fold, functools.partial):
        fold = fold.func
    try:
        return textwrap.dedent(inspect.getsource(fold)).rstrip()
    except (OSError, TypeError):
        return ""


def difference(before: Sequence[str], after: Sequence[str]) -> tuple[DiffLine, ...]:
    """Return all lines of both, as a unified diff has them; without a difference, all are kept."""
    # More lines of context than there are lines: folds are short, and are read as a whole.
    lines = list(difflib.unified_diff(before, after, lineterm="", n=len(before) + len(after)))
    if not lines:
        return tuple(DiffLine(LineKind.KEPT, line) for line in before)
    header = 3
    return tuple(DiffLine(LineKind(line[0]), line[1:]) for line in lines[header:])


def code_difference(folds: Sequence[FoldText]) -> tuple[DiffLine, ...]:
    """Return the difference of the sources of the first and the last of these folds."""
    if not folds:
        return ()
    return difference(folds[0].code.splitlines(), folds[-1].code.splitlines())


def column_difference(folds: Sequence[FoldText]) -> tuple[DiffLine, ...]:
    """Return the difference of what Spark computes, for the first and the last of these folds."""
    return difference(folds[0].columns, folds[-1].columns) if folds else ()
