"""A driver's report is as old as the machine's boot clock says, whatever the wall clock was set to since."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.boot_clock import boot_id, boot_s
from include.stream import query_reports
from include.stream.query_reports import QueryStatus, newest_reports


@dataclass(frozen=True)
class Message:
    """A record of the topic."""

    fields: dict[str, Any]

    def key(self) -> bytes:
        """Return the query's name."""
        return b"balance/v1"

    def value(self) -> bytes:
        """Return the report."""
        return json.dumps(self.fields).encode()


def report(wall_clock_moved: timedelta, **boot: object) -> dict[str, Any]:
    """Return a report that was made before the wall clock was set by a difference."""
    return {
        "query": "balance/v1",
        "phase": "real time",
        "restarts": 0,
        "last_error": "",
        "driver_pid": 1,
        "master": "local",
        "last_batch": {},
        "at": (datetime.now(UTC) - wall_clock_moved).isoformat(),
        **boot,
    }


def status_of(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]) -> QueryStatus:
    def read_tail(*_: object, **__: object) -> Iterator[Message]:
        yield Message(fields)

    monkeypatch.setattr(query_reports, "partition_count", lambda *_: 1)
    monkeypatch.setattr(query_reports, "read_tail", read_tail)
    (status,) = newest_reports(cast("AdminClient", None), cast("Consumer", None))
    return status


@pytest.mark.parametrize(
    "moved", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=1), timedelta(days=-1)]
)
def test_report_of_a_driver_on_this_machine_is_fresh_until_it_is_old(
    monkeypatch: pytest.MonkeyPatch, moved: timedelta
) -> None:
    new = status_of(monkeypatch, report(moved, boot_id=boot_id(), at_boot_s=boot_s() - 2.0))
    old = status_of(monkeypatch, report(moved, boot_id=boot_id(), at_boot_s=boot_s() - 20.0))

    assert (new.is_fresh, old.is_fresh) == (True, False)
    assert 2.0 <= new.reported_age_s < 10.0


@pytest.mark.parametrize("boot", [{}, {"boot_id": "of another machine", "at_boot_s": 5.0}])
def test_report_of_another_machine_or_release_is_as_old_as_both_wall_clocks_say(
    monkeypatch: pytest.MonkeyPatch, boot: dict[str, object]
) -> None:
    assert 20.0 <= status_of(monkeypatch, report(timedelta(seconds=20), **boot)).reported_age_s < 60.0
