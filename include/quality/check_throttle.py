"""Limits how often checks follow compactions: a long check is followed by a long pause."""

import json
from pathlib import Path

from include.quality.check import CheckResult, Mode
from include.quality.report import reports_directory

# Checks after compactions run for at most a tenth of the time.
PAUSE_FACTOR = 9.0


def pause_left_s(home: Path, read_model: str, now_s: float, mode: Mode = Mode.SAMPLE) -> float:
    """Return the seconds until a check of a read model may follow a compaction again; 0.0 if it may now.

    The read model's newest check whose report still exists determines the pause, regardless of what triggered it. Before an
    incremental check, only those count that were to be incremental: a full check in between does not make it expensive.

    Args:
        home: where the reports are, among all other state.
        read_model: name of the read model.
        now_s: the time (Unix s).
        mode: of the check that is to run.
    """
    summaries = [(path.stat().st_mtime, path) for path in reports_directory(home).glob("*.json")]
    for ended_s, path in sorted(summaries, reverse=True):
        try:
            result = CheckResult.read(path.read_text(encoding="utf-8"))
            if result["request"]["read_model"] != read_model:
                continue
            was_incremental = result["request"].get("mode") == Mode.INCREMENTAL or result.get("because")
            if mode is Mode.INCREMENTAL and not was_incremental:
                continue
            pause_s = PAUSE_FACTOR * float(result["duration_s"])
        except (OSError, json.JSONDecodeError, KeyError, TypeError):
            # Unreadable, or written by another release.
            continue
        # A report from the future was written before the clock was set back.
        return max(0.0, ended_s + pause_s - now_s) if ended_s <= now_s else 0.0
    return 0.0
