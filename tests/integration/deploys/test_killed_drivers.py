"""Whichever process is killed while a new driver replaces the present one, every event is folded once, and a driver goes on."""

import os
import signal
import uuid
from collections.abc import Callable

import psutil
import pytest

from include.settings import Settings
from include.stream import driver_configuration, driver_launch, query_transfer
from include.stream.driver_configuration import DriverConfiguration, Handover, HandoverReport
from stack.components.stream import STREAM_SUPERVISOR
from stack.launchers import stream_driver
from stack.supervision.supervisor import Supervisor
from tests.integration.deploys.traffic import Traffic
from tests.support.waiting import wait_until

TIMEOUT_S = 300.0
POLL_S = 0.02


def is_launched(settings: Settings) -> bool:
    report = driver_configuration.read_report(settings.home)
    # Not the standby, which has been ended.
    pid = new_driver(settings)
    is_alive = pid != 0 and psutil.pid_exists(pid)
    return report is not None and report.state == Handover.UNDER_WAY and is_alive


def is_begun(settings: Settings) -> bool:
    return query_transfer.read(settings.home) is not None


def is_passing(settings: Settings) -> bool:
    transfer = query_transfer.read(settings.home)
    return transfer is not None and query_transfer.passed(settings.home, transfer) != frozenset()


def driver(settings: Settings) -> int:
    found = stream_driver.running(settings.home)
    return 0 if found is None else found.pid


def new_driver(settings: Settings) -> int:
    report = driver_launch.read_report(settings.home)
    return 0 if report is None else report.standby_pid


def supervisor(settings: Settings) -> int:
    (found,) = psutil.Process(Supervisor(settings).states()[STREAM_SUPERVISOR].pid).children()
    return found.pid


def request(settings: Settings) -> DriverConfiguration:
    """Request another driver, as `up` does; only the digest of the declarations differs."""
    return driver_configuration.request(settings, uuid.uuid4().hex)


def outcome(settings: Settings, wanted: DriverConfiguration) -> HandoverReport | None:
    report = driver_configuration.read_report(settings.home)
    is_over = report is not None and report.state != Handover.UNDER_WAY
    return report if report is not None and is_over and report.request == wanted.request else None


@pytest.mark.parametrize(
    ("victim", "moment", "state"),
    [
        pytest.param(driver, is_passing, Handover.DONE, id="the present driver passes its folds"),
        *(
            pytest.param(*case, id=name, marks=pytest.mark.endurance)
            for name, case in {
                "the present driver before the new one is ready": (driver, is_launched, Handover.DONE),
                "the present driver when it begins": (driver, is_begun, Handover.DONE),
                "the new driver before it is ready": (new_driver, is_launched, Handover.FAILED),
                "the new driver when it begins": (new_driver, is_begun, Handover.FAILED),
                "the new driver has a fold": (new_driver, is_passing, Handover.FAILED),
                "the stream supervisor": (supervisor, is_passing, Handover.DONE),
            }.items()
        ),
    ],
)
def test_every_event_is_folded_once_after_a_kill(
    stack: Settings,
    traffic: Traffic,
    victim: Callable[[Settings], int],
    moment: Callable[[Settings], bool],
    state: Handover,
) -> None:
    with traffic.running():
        wanted = request(stack)
        wait_until(lambda: moment(stack), "the moment has come", TIMEOUT_S, POLL_S)
        os.kill(victim(stack), signal.SIGKILL)
        wait_until(lambda: outcome(stack, wanted), "the change is over", TIMEOUT_S)
    report = outcome(stack, wanted)
    assert report is not None
    assert report.state == state
    traffic.settle()
    assert traffic.without_answer == []
