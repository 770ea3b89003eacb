"""Limits how often checks follow compactions: a long check is followed by a long pause."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
    for ended_s, result in _newest_checks(home, read_model):
        was_incremental = result["request"].get("mode") == Mode.INCREMENTAL or result.get("full_check_reason")
        if mode is Mode.INCREMENTAL and not was_incremental:
            continue
        try:
            pause_s = PAUSE_FACTOR * float(result["duration_s"])
        except (KeyError, TypeError, ValueError):
            continue
        # A report from the future was written before the clock was set back.
        return max(0.0, ended_s + pause_s - now_s) if ended_s <= now_s else 0.0
    return 0.0


def last_check_text(home: Path, read_model: str) -> str:
    """Return in words when the last check of a read model ran, and its outcome: for the reason why another one does not run."""
    for ended_s, result in _newest_checks(home, read_model):
        outcome = {True: "passed", False: "FAILED"}.get(result.get("passed"), "could not be made")  # type: ignore[arg-type]  # or None
        ended = datetime.fromtimestamp(ended_s, UTC)
        return f"Its last check ({result['request'].get('mode')}) ended at {ended:%Y-%m-%d %H:%M:%S} UTC and {outcome}."
    return "It has not been checked yet."


def _newest_checks(home: Path, read_model: str) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield when each check of a read model ended (Unix s), and its JSON, the newest first."""
    summaries = [(path.stat().st_mtime, path) for path in reports_directory(home).glob("*.json")]
    for ended_s, path in sorted(summaries, reverse=True):
        try:
            result = CheckResult.read(path.read_text(encoding="utf-8"))
            if result["request"]["read_model"] == read_model:
                yield ended_s, result
        except (OSError, json.JSONDecodeError, KeyError, TypeError):
            # Unreadable, or written by another release.
            continue
