"""Two stream supervisors of one home, of which the new one replaces the present one; a test takes the steps of both."""

import time
from collections.abc import Callable

from include.files import FileLock
from include.settings import Settings
from include.stream import driver_configuration
from stack.launchers.driver_process import DriverProcess
from stack.launchers.stream_supervisor import StreamSupervisor, lock_path
from stack.launchers.supervisor_replacement import NextSupervisor, Replacement, Successor, successor
from tests.support.faults.supervised_drivers import DRIVER, TIMEOUT_S, SupervisedDrivers

NEW = "/run/new.json"


class Supervisors:
    """The present stream supervisor of a stack, with its lock, and a new one, which a test starts."""

    def __init__(self, stack: SupervisedDrivers) -> None:
        self.stack = stack
        self.home = stack.home
        self.lock = FileLock(lock_path(self.home))
        assert self.lock.try_acquire()
        self.is_drained = False
        stack.supervisor._replacement = Replacement(self.home, lambda: self.is_drained)
        self.present: StreamSupervisor | None = stack.supervisor

    def start(self, behaviour: str, standby: str = "on") -> None:
        """Start the new stream supervisor, whose driver behaves like this."""
        settings = Settings.of(home=self.home, stream_driver_host=behaviour, stream_standby=standby)
        self.wanted = driver_configuration.request_for(settings, "", NEW)
        self.new = NextSupervisor(self.home, FileLock(lock_path(self.home)), self.wanted, DRIVER)

    @property
    def driver(self) -> DriverProcess:
        """The new driver."""
        assert self.new.driver is not None
        return self.new.driver

    def step_until(self, is_true: Callable[[], bool]) -> None:
        """Have both take steps until this is true."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not is_true():
            assert time.monotonic() < deadline_s, (self.stack.writes, successor(self.home))
            if self.present is not None and not self.present.is_over():
                self.present.step()
            assert not self.new.step()
            time.sleep(0.01)

    def wait_until_ready(self) -> None:
        """Have both take steps until the present one sees that it may end."""
        self.step_until(lambda: successor(self.home) == Successor(self.new.pid, is_ready=True))

    def stop_present(self) -> None:
        """Stop the present one, as its holder does when the new one is ready."""
        self.is_drained = True
        self.stack.supervisor.request_stop(15, None)

    def take_over(self, *, killed: bool = False) -> None:
        """End the present one, which has stopped or is killed, and go on with the new one."""
        present = self.stack.supervisor
        if not killed:
            self.step_until(present.is_over)
            if not present._has_passed:
                present._stop()
        elif present._driver is not None:
            present._driver.kill()  # as the kernel does
        self.lock.release()
        assert self.new.step()
        driver_configuration.adopt_next(self.home, NEW)
        self.stack.supervisor = StreamSupervisor(Settings.of(home=self.home), DRIVER, lambda _: False)
        if self.new.driver is not None:
            self.stack.supervisor.continue_with(self.new.driver, self.wanted)
