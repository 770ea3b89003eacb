"""A materializer ends when the wall clock is set back, and only then."""

from dataclasses import dataclass

import pytest

from query_api.materializer import clock_watch
from query_api.materializer.clock_watch import ClockWatch


@dataclass
class Clocks:
    """Both clocks, which the test sets."""

    unix_s: float = 1_000_000.0
    since_boot_s: float = 50.0

    def time(self) -> float:
        """Return the wall clock's time."""
        return self.unix_s

    def boot_s(self) -> float:
        """Return the boot clock's time."""
        return self.since_boot_s

    def go_on(self, seconds: float, set_by_s: float = 0.0) -> None:
        """Let time pass, and set the wall clock."""
        self.unix_s += seconds + set_by_s
        self.since_boot_s += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(clock_watch, "time", clocks)
    monkeypatch.setattr(clock_watch, "boot_s", clocks.boot_s)
    return clocks


@pytest.mark.parametrize(
    ("set_by_s", "ends"),
    [(-86400.0, [1]), (-3600.0, [1]), (-3.0, [1]), (-0.5, []), (3600.0, []), (86400.0, [])],
)
def test_process_ends_when_the_clock_is_set_back(clocks: Clocks, set_by_s: float, ends: list[int]) -> None:
    ended: list[int] = []
    watch = ClockWatch(ended.append)
    for _ in range(10):
        clocks.go_on(1.0)
        watch.step()

    clocks.go_on(1.0, set_by_s)
    watch.step()

    assert ended == ends


def test_clock_that_is_corrected_slowly_ends_nothing(clocks: Clocks) -> None:
    ended: list[int] = []
    watch = ClockWatch(ended.append)

    for _ in range(10_000):
        clocks.go_on(1.0, -0.0005)
        watch.step()

    assert ended == []
