"""Progress is reported in one line and as a value: done of total, rate, remaining time."""

import time

import pytest

from include.work_progress import PATTERN, Progress, WorkProgress


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
    work = WorkProgress("catch up of balance v2", "events", 2_000)
    found = work.line(work.progress(done, elapsed_s, done_since))
    assert found == f"progress: catch up of balance v2: {line}"


def test_no_work_counts_as_complete() -> None:
    work = WorkProgress("it", "events", 0)
    assert work.line(work.progress(0, 1.0, 0)) == "progress: it: 0 of 0 events (100 %)"


def test_line_of_work_whose_end_is_unknown() -> None:
    work = WorkProgress("it", "records", None)
    assert work.line(work.progress(400, 2.0, 400)) == "progress: it: 400 records, 200/s"


def test_line_of_work_that_is_planned_step_by_step() -> None:
    work = WorkProgress("it", "Spark tasks", 300, is_total_final=False)
    assert (
        work.line(work.progress(240, 40.0, 240)) == "progress: it: 240 of 300 Spark tasks planned so far, 6/s"
    )


def test_line_is_found_in_a_task_log() -> None:
    found = PATTERN.search("2026-05-01 12:00:00,000Z INFO foldlake.work: progress: it: 1 of 2 events (50 %)")
    assert found is not None
    assert found[0] == "progress: it: 1 of 2 events (50 %)"


def test_the_rate_is_that_of_the_last_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    reports: list[Progress] = []
    work = WorkProgress("it", "events", 100_000, reports.append)

    # 1,000/s for a minute, then 100/s.
    for second in range(0, 100, 2):
        now_s = float(second)
        work.reached(min(second, 60) * 1_000 + max(0, second - 60) * 100)

    assert reports[10] == Progress(20_000, 100_000, "events", 1_000.0, 80.0)
    assert reports[-1] == Progress(63_800, 100_000, "events", 100.0, 362.0)


def test_progress_is_reported_at_most_every_two_seconds_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    reports: list[Progress] = []
    work = WorkProgress("it", "events", 10, reports.append)

    for done in range(11):
        now_s += 0.5
        work.reached(done)

    assert [report.done for report in reports] == [0, 4, 8, 10]
