"""How often checks follow compactions: each reads the whole log, so that a long one is followed by a long pause."""

import json

from include.quality.check import CheckResult
from include.quality.report import reports_directory
from include.settings import Settings

# Checks after compactions take a tenth of the time at most.
PAUSE_FACTOR = 9.0


def pause_left_s(settings: Settings, read_model: str, now_s: float) -> float:
    """Return for how many more seconds no check of a read model follows a compaction; 0.0 when one may.

    The newest check of the read model whose report still exists decides, whatever started it.

    Args:
        settings: where the reports are.
        read_model: name of the read model.
        now_s: the time (Unix s).
    """
    summaries = [(path.stat().st_mtime, path) for path in reports_directory(settings).glob("*.json")]
    for ended_s, path in sorted(summaries, reverse=True):
        try:
            result = CheckResult.read(path.read_text(encoding="utf-8"))
            if result["request"]["read_model"] != read_model:
                continue
            pause_s = PAUSE_FACTOR * float(result["duration_s"])
        except (OSError, json.JSONDecodeError, KeyError, TypeError):
            # Not a summary of this release.
            continue
        # A report from the future was written before the clock was set back.
        return max(0.0, ended_s + pause_s - now_s) if ended_s <= now_s else 0.0
    return 0.0
