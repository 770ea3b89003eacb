"""The result of one check, and the report of all of them. Standard library only."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TextIO

# ANSI colors of a terminal.
COLORS = {"ok": "32", "warning": "33", "problem": "31", "skipped": "2"}
STATE_WIDTH, CHECK_WIDTH = 9, 22


class State(StrEnum):
    """PROBLEM: Foldlake does not work until this is corrected. SKIPPED: the check is not possible now."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    check: its name. found: the value on this machine. needed: the value that Foldlake needs; empty if `found` says it.
    action: what to do; empty if nothing is to be done.
    """

    check: str
    state: State
    found: str
    needed: str = ""
    action: str = ""


def report(findings: Iterable[Finding], *, is_json: bool, output: TextIO) -> int:
    """Write the findings to `output`, and return the exit status: 1 if one of them is a problem, otherwise 0.

    As text, each is written when it is found; with colors, if the output is a terminal. is_json: as one JSON document instead.
    """
    found = []
    for finding in findings:
        found.append(finding)
        if not is_json:
            output.write(as_text(finding, color=output.isatty()))
            output.flush()
    has_problem = any(finding.state is State.PROBLEM for finding in found)
    if is_json:
        document = {"ok": not has_problem, "findings": [asdict(finding) for finding in found]}
        output.write(f"{json.dumps(document, indent=2)}\n")
    else:
        counts = (
            _count(sum(finding.state is state for finding in found), state)
            for state in (State.PROBLEM, State.WARNING)
        )
        output.write(f"\n{', '.join(counts).capitalize()}.\n")
    return int(has_problem)


def as_text(finding: Finding, *, color: bool = False) -> str:
    """Return a finding as a line, and the lines below it with what to do."""
    state = f"{finding.state:<{STATE_WIDTH}}"
    if color:
        state = f"\x1b[{COLORS[finding.state]}m{state}\x1b[0m"
    needed = f"; needed: {finding.needed}" if finding.needed else ""
    lines = [f"{state} {finding.check:<{CHECK_WIDTH}} {finding.found}{needed}"]
    lines += [f"{'':<{STATE_WIDTH}} {line}" for line in finding.action.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
