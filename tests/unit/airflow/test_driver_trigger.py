"""The trigger wants the driver when it is due, follows it without memory of its own, and ends it when an operator ends the task."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent

from include.airflow import driver_trigger
from include.airflow.driver_trigger import DriverTrigger
from include.stream import launch_failures
from include.stream.driver_launch import LaunchReport, follow, read_request, write_report
from include.stream.launch_failures import LaunchFailures

NOW = datetime.now(UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    monkeypatch.setattr(driver_trigger, "POLL_INTERVAL_S", 0.01)
    (tmp_path / "stream").mkdir()
    return tmp_path


def end(home: Path, launch_id: str, error: str = "") -> None:
    write_report(home, LaunchReport(launch_id, 1, NOW.isoformat(), has_ended=True, error=error))


def wanted(home: Path) -> str | None:
    request = read_request(home)
    return request.launch_id if request is not None and request.is_wanted else None


async def event_of(trigger: DriverTrigger) -> TriggerEvent:
    async for event in trigger.run():
        return event
    raise AssertionError("the trigger has ended without an event")


async def until_wanted(home: Path) -> str:
    while (launch_id := wanted(home)) is None:  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)
    return launch_id


async def event_after_end(home: Path, error: str) -> tuple[str, TriggerEvent]:
    following = asyncio.create_task(event_of(DriverTrigger("task 1")))
    launch_id = await asyncio.wait_for(until_wanted(home), 10)
    end(home, launch_id, error)
    return launch_id, await asyncio.wait_for(following, 10)


def test_a_stopped_driver_ends_the_task_with_success(home: Path) -> None:
    _, event = asyncio.run(event_after_end(home, ""))

    assert isinstance(event, TaskSuccessEvent)


def test_a_failed_driver_resumes_the_task_with_its_launch(home: Path) -> None:
    launch_id, event = asyncio.run(event_after_end(home, "ValueError: a wrong setting"))

    assert not isinstance(event, TaskSuccessEvent)
    assert event.payload == launch_id


def test_a_trigger_of_a_restarted_triggerer_follows_the_same_launch(home: Path) -> None:
    launch_id = follow(home, "task 1")
    end(home, launch_id, "killed")

    event = asyncio.run(asyncio.wait_for(event_of(DriverTrigger("task 1")), 10))

    assert event.payload == launch_id
    assert wanted(home) == launch_id


def test_the_driver_is_wanted_when_it_is_due(home: Path) -> None:
    due = LaunchFailures(
        5, NOW.isoformat(), "it fails", (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    )
    launch_failures.write(home, due)

    async def follow_it() -> float:
        following = asyncio.create_task(event_of(DriverTrigger("task 1")))
        await asyncio.wait_for(until_wanted(home), 10)
        following.cancel()
        return (datetime.now(UTC) - datetime.fromisoformat(due.next_launch_at)).total_seconds()

    assert asyncio.run(follow_it()) >= 0


def test_an_operator_who_has_corrected_the_cause_need_not_wait(home: Path) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    launch_failures.write(home, LaunchFailures(9, NOW.isoformat(), "it fails", later))
    launch_failures.request_launch(home)

    _, event = asyncio.run(event_after_end(home, ""))

    assert isinstance(event, TaskSuccessEvent)
    assert not launch_failures.is_launch_requested(home)


def test_a_task_that_an_operator_ends_ends_the_driver(home: Path) -> None:
    follow(home, "task 1")

    asyncio.run(DriverTrigger("task 1").on_kill())

    assert wanted(home) is None


def test_a_task_that_is_ended_late_leaves_the_driver_to_its_successor(home: Path) -> None:
    follow(home, "task 1")
    launch_id = follow(home, "task 2")

    asyncio.run(DriverTrigger("task 1").on_kill())

    assert wanted(home) == launch_id
    event = asyncio.run(asyncio.wait_for(event_of_follower(home), 10))
    assert isinstance(event, TaskSuccessEvent)


async def event_of_follower(home: Path) -> TriggerEvent:
    """Return the event of a task after another one has taken over the launch that it follows."""
    following = asyncio.create_task(event_of(DriverTrigger("task 3")))
    while (request := read_request(home)) is None or request.follower != "task 3":  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)
    follow(home, "task 4")
    return await following
