"""What a check came to, as whoever launched its job learns it: from the JSON beside the report, not from the exit status."""

from dataclasses import dataclass
from enum import Enum

from include.quality.check import CheckResult
from include.quality.report import summary_path
from include.settings import Settings


class Outcome(Enum):
    """What a check came to; the value is what its JSON has under `passed`."""

    PASSED = True
    FAILED = False
    UNCHECKABLE = None


@dataclass(frozen=True)
class Verdict:
    """A check's outcome, and the same in one line."""

    outcome: Outcome
    words: str


def verdict_of(settings: Settings, run_id: str) -> Verdict | None:
    """Return what a check came to, or None when it came to nothing."""
    try:
        said = CheckResult.read(summary_path(settings, run_id).read_text(encoding="utf-8"))
        return Verdict(Outcome(said["passed"]), str(said["verdict"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
