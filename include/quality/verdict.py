"""The verdict of a check, for the process that launched its job: read from the JSON beside the report, not from the exit status."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from include.quality.check import CheckResult
from include.quality.report import summary_path


class Outcome(Enum):
    """The outcome of a check; the value equals `passed` in its JSON."""

    PASSED = True
    FAILED = False
    UNCHECKABLE = None


@dataclass(frozen=True)
class Verdict:
    """A check's outcome, and a one-line summary of it."""

    outcome: Outcome
    summary: str


def verdict_of(home: Path, run_id: str) -> Verdict | None:
    """Return the verdict of a check, or None when it has none."""
    try:
        fields = CheckResult.read(summary_path(home, run_id).read_text(encoding="utf-8"))
        return Verdict(Outcome(fields["passed"]), str(fields["verdict"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
