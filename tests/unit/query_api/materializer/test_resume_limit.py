"""A store that was not read for so long that it may have missed deletions is read from the beginning; no other one is."""

from pathlib import Path
from typing import Any

import pytest

from include import boot_clock
from include.boot_clock import Moment
from query_api.materializer.changelog_follower import RESUME_LIMIT_S, ChangelogFollower
from query_api.store.base import Change, ChangelogPosition
from query_api.store.lmdb import LmdbBackend

HOUR_S, DAY_S = 3600.0, 86_400.0


class NoRecords:
    """A consumer of an empty changelog."""

    def assign(self, partitions: object) -> None:
        """Accept any assignment."""


def resumes(tmp_path: Path, position: ChangelogPosition) -> bool:
    """Whether a follower continues from a stored position."""
    store = LmdbBackend(1024 * 1024).open_writer(tmp_path / "store", 1)
    store.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: position}, {})
    assert store.positions() == {0: position}, "it is stored"
    consumer: Any = NoRecords()
    registry: Any = None
    follower = ChangelogFollower(
        "topic", store, consumer, registry, release_grace_s=0, previously_ready={}, on_change=lambda: None
    )
    found = set(follower._followed) == {0}
    store.close()
    return found


def position(seconds_ago: float, moved_s: float) -> ChangelogPosition:
    """Return a position of some seconds ago; the wall clock was set by `moved_s` since."""
    now = Moment.now()
    return ChangelogPosition.at(1, Moment(now.boot_s - seconds_ago, now.unix_s - seconds_ago - moved_s))


@pytest.mark.parametrize("moved_s", [0.0, HOUR_S, -HOUR_S, DAY_S, -DAY_S])
@pytest.mark.parametrize(("seconds_ago", "is_resumed"), [(60.0, True), (RESUME_LIMIT_S + 60.0, False)])
def test_clock_that_is_set_changes_nothing(
    tmp_path: Path, seconds_ago: float, moved_s: float, *, is_resumed: bool
) -> None:
    assert resumes(tmp_path, position(seconds_ago, moved_s)) is is_resumed


@pytest.mark.parametrize(("moved_s", "is_resumed"), [(0.0, True), (DAY_S, False), (-HOUR_S, False)])
def test_after_a_restart_of_the_machine_the_wall_clock_decides_unless_it_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved_s: float, *, is_resumed: bool
) -> None:
    stored = position(60.0, moved_s)
    (tmp_path / "boot_id").write_text("another-boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")

    assert resumes(tmp_path, stored) is is_resumed


def test_position_of_an_earlier_release_is_resumed(tmp_path: Path) -> None:
    now = Moment.now()

    assert resumes(tmp_path, ChangelogPosition(1, now.unix_s - 60.0))
    assert not resumes(tmp_path / "old", ChangelogPosition(1, now.unix_s - DAY_S))
