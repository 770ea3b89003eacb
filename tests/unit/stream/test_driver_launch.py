"""A task attaches to the launch that is under way, gets one launch only, and cannot end a driver that another task follows by now.

A standby driver waits for its turn.
"""

import threading
from pathlib import Path

import pytest

from include.stream.driver_launch import (
    TURN_FILE,
    LaunchReport,
    ended_report,
    follow,
    is_following,
    is_standby,
    is_under_way,
    read_request,
    wait_for_turn,
    withdraw,
    write_report,
)

NOW = "2026-05-01T12:00:00+00:00"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "stream").mkdir()
    return tmp_path


def is_wanted(home: Path) -> bool:
    request = read_request(home)
    assert request is not None
    return request.is_wanted


def end(home: Path, launch_id: str) -> None:
    write_report(home, LaunchReport(launch_id, 1, NOW, has_ended=True))


def test_a_second_task_attaches_to_the_launch_under_way(home: Path) -> None:
    first = follow(home, "task 1")

    assert follow(home, "task 2") == first
    assert is_following(home, "task 2")
    assert not is_following(home, "task 1")


def test_a_task_gets_one_launch_also_after_it_has_ended(home: Path) -> None:
    launch_id = follow(home, "task 1")
    end(home, launch_id)

    assert follow(home, "task 1") == launch_id
    assert follow(home, "task 2") != launch_id


def test_a_withdrawn_launch_is_not_attached_to(home: Path) -> None:
    first = follow(home, "task 1")
    withdraw(home, "task 1")

    assert not is_wanted(home)
    assert is_under_way(home)
    assert follow(home, "task 2") != first
    assert is_wanted(home)


def test_a_task_does_not_end_a_driver_that_another_task_follows(home: Path) -> None:
    follow(home, "task 1")
    follow(home, "task 2")

    withdraw(home, "task 1")

    assert is_wanted(home)
    withdraw(home)
    assert not is_wanted(home)


def test_a_task_that_waits_for_its_launch_ends_the_one_that_has_failed_before(home: Path) -> None:
    end(home, follow(home, "task 1"))

    withdraw(home, "task 2")

    assert not is_wanted(home)


def test_a_report_of_an_earlier_launch_is_not_that_of_this_one(home: Path) -> None:
    end(home, "an earlier launch")

    launch_id = follow(home, "task 1")

    assert ended_report(home, launch_id) is None
    end(home, launch_id)
    assert ended_report(home, launch_id) is not None
    assert not is_under_way(home)


def test_damaged_files_are_as_if_there_were_none(home: Path) -> None:
    (home / "stream" / "wanted.json").write_text("{")
    (home / "stream" / "launch.json").write_text("[]")

    launch_id = follow(home, "task 1")

    assert ended_report(home, launch_id) is None
    assert is_under_way(home)


def test_a_driver_that_has_the_lock_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TURN_FILE, raising=False)

    assert not is_standby()
    wait_for_turn()


def test_a_standby_waits_for_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = tmp_path / "turn"
    monkeypatch.setenv(TURN_FILE, str(turn))
    assert is_standby()
    waiting = threading.Thread(target=wait_for_turn)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()

    turn.touch()
    waiting.join(10)

    assert not waiting.is_alive()
    assert not is_standby()
