"""A report is as old as the machine's boot clock says, whatever the wall clock was set to since."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from include.boot_clock import boot_id, boot_s
from include.kafka.compacted_topics import Report


def report(wall_clock_moved: timedelta, **boot: object) -> Report:
    """Return a report that was made before the wall clock was set by a difference."""
    at = (datetime.now(UTC) - wall_clock_moved).isoformat()
    return Report.parse(json.dumps({"query": "balance/v1", "at": at, **boot}).encode())


@pytest.mark.parametrize(
    "moved", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=1), timedelta(days=-1)]
)
def test_report_of_this_machine_is_fresh_until_it_is_old(moved: timedelta) -> None:
    new = report(moved, boot_id=boot_id(), at_boot_s=boot_s() - 2.0)
    old = report(moved, boot_id=boot_id(), at_boot_s=boot_s() - 20.0)

    assert (new.is_fresh, old.is_fresh) == (True, False)
    assert 2.0 <= new.age_s < 10.0


@pytest.mark.parametrize("boot", [{}, {"boot_id": "of another machine", "at_boot_s": 5.0}])
def test_report_of_another_machine_or_release_is_as_old_as_both_wall_clocks_say(
    boot: dict[str, object],
) -> None:
    assert 20.0 <= report(timedelta(seconds=20), **boot).age_s < 60.0
