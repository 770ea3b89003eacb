"""Folds stand still when events wait, none is folded, and nothing explains why they need no fold."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from include import boot_clock
from include.kafka.compacted_topics import FRESH_S
from include.position import Offsets
from include.stream.folded_offsets import STANDSTILL_S
from include.stream.query_reports import QueryReport
from query_api.materializer import fold_watch
from query_api.materializer.fold_watch import FoldWatch

KEY = ("balance", 1)
INTERVAL_S = 300.0


@dataclass
class Clock:
    """The time, which the test sets."""

    now_s: float = 1000.0

    def boot_s(self) -> float:
        """Return the time."""
        return self.now_s


@dataclass
class Kafka:
    """What Kafka says about the fold; counts the inquiries.

    has_records: whether there are records below the ends, and not only markers of transactions.
    """

    read: Offsets = field(default_factory=Offsets)
    query: QueryReport | None = None
    inquiries: int = 0
    has_records: bool = True

    def inquire(
        self, key: tuple[str, int], source_topic: str, folded: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[Offsets, QueryReport | None]:
        """Answer."""
        assert (key, source_topic) == (KEY, "balance")
        assert all(folded[p] < end for p, end in ends.items())
        self.inquiries += 1
        return self.read if self.has_records else Offsets(ends), self.query


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fold_watch, "boot_s", clock.boot_s)
    monkeypatch.setattr(boot_clock, "boot_s", clock.boot_s)
    return clock


@dataclass
class Watched:
    """A watch that observes every second."""

    clock: Clock
    kafka: Kafka = field(default_factory=Kafka)

    def __post_init__(self) -> None:
        """Create the watch."""
        self._watch = FoldWatch(self.kafka.inquire, INTERVAL_S, 6.0, {})

    def for_s(self, seconds: int, folded: int, end: int) -> float | None:
        """Observe once a second, and return since when the folds stand still."""
        since = None
        for _ in range(seconds):
            self.clock.now_s += 1.0
            since = self._watch.still_since(KEY, "balance", {0: folded}, {0: end})
        return None if since is None else since.boot_s


@pytest.fixture
def watched(clock: Clock) -> Watched:
    return Watched(clock)


def report(phase: str, age_s: float = 1.0) -> QueryReport:
    return QueryReport("balance/v1", phase, 0, "", 1, "local", age_s)


def test_folds_without_waiting_events_do_not_stand_still_and_nothing_is_asked(watched: Watched) -> None:
    assert watched.for_s(3600, folded=5, end=5) is None
    assert watched.kafka.inquiries == 0


def test_event_after_an_idle_hour_counts_from_its_arrival(watched: Watched) -> None:
    watched.for_s(3600, folded=5, end=5)
    idle_until = watched.clock.now_s

    assert watched.for_s(5, folded=5, end=6) is None
    assert watched.for_s(5, folded=5, end=6) == idle_until
    assert watched.for_s(60, folded=5, end=9) == idle_until
    assert watched.for_s(1, folded=6, end=9) is None, "they move again"


@pytest.mark.parametrize("query", [None, report("starting"), report("failed"), report("real time", FRESH_S)])
def test_folds_of_a_driver_that_does_not_fold_stand_still_soon(
    watched: Watched, query: QueryReport | None
) -> None:
    watched.kafka.query = query

    assert watched.for_s(12, folded=5, end=6) is not None


@pytest.mark.parametrize("phase", ["real time", "catching up"])
def test_query_at_work_stands_still_when_it_does_not_commit_either(watched: Watched, phase: str) -> None:
    watched.kafka.query = report(phase)

    assert watched.for_s(int(INTERVAL_S), folded=5, end=6) is None
    assert watched.for_s(90, folded=5, end=6) is not None


def test_what_is_never_folded_is_no_standstill_and_is_asked_for_once(watched: Watched) -> None:
    watched.kafka.read = Offsets({0: 6})

    assert watched.for_s(3600, folded=5, end=6) is None
    assert watched.kafka.inquiries == 1
    assert watched.for_s(12, folded=5, end=7) is not None, "the next event needs a fold"


def test_ends_that_move_without_a_record_are_no_standstill(watched: Watched) -> None:
    watched.kafka.has_records = False

    assert all(watched.for_s(1, folded=5, end=6 + second) is None for second in range(600))
    assert watched.kafka.inquiries <= 600 / STANDSTILL_S
    watched.kafka.has_records = True
    assert watched.for_s(12, folded=5, end=700) is not None, "a record needs a fold"
