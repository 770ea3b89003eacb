"""Progress is reported in one line: done of total, rate, remaining time."""

import pytest

from include.work_progress import PATTERN, WorkProgress


@pytest.mark.parametrize(
    ("done", "elapsed_s", "done_since", "line"),
    [
        (0, 0.0, 0, "0 of 2,000 events (0 %)"),
        (500, 2.0, 500, "500 of 2,000 events (25 %), 250/s, 6 s left"),
        (1_999, 4.0, 999, "1,999 of 2,000 events (99 %), 250/s, 0 s left"),
        (2_000, 4.0, 2_000, "2,000 of 2,000 events (100 %), 500/s"),
    ],
)
def test_line_of_progress(done: int, elapsed_s: float, done_since: int, line: str) -> None:
    progress = WorkProgress("catch up of balance v2", "events", 2_000)
    assert progress.line(done, elapsed_s, done_since) == f"progress: catch up of balance v2: {line}"


def test_no_work_counts_as_complete() -> None:
    assert WorkProgress("it", "events", 0).line(0, 1.0, 0) == "progress: it: 0 of 0 events (100 %)"


def test_line_is_found_in_a_task_log() -> None:
    found = PATTERN.search("2026-05-01 12:00:00,000Z INFO foldlake.work: progress: it: 1 of 2 events (50 %)")
    assert found is not None
    assert found[0] == "progress: it: 1 of 2 events (50 %)"
