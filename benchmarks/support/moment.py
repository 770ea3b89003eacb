"""A moment at the begin or the end of a measurement at one rate."""

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.changelog_times import TopicEnds, topic_ends
from benchmarks.support.deposits import CHANGELOG
from benchmarks.support.report import cpu_s
from include.settings import Settings


@dataclass(frozen=True)
class Moment:
    """The topics' contents, the processor time of a process and its children up to now in seconds, and the number of commits of all queries."""

    ends: TopicEnds
    cpu_s: float
    at_s: float
    commits: int

    def cpu_share_until(self, end: "Moment") -> float:
        """Return the processor time until another moment, in seconds a second."""
        return (end.cpu_s - self.cpu_s) / (end.at_s - self.at_s)


def moment(settings: Settings, pid: int, changelog: str = CHANGELOG) -> Moment:
    """Return the present moment of a process that folds into this changelog."""
    return Moment(topic_ends(settings, changelog), cpu_s(pid), time.monotonic(), _commits(settings))


def _commits(settings: Settings) -> int:
    """Return how often all queries have committed; the folders keep the newest commits, whose names are their numbers."""
    newest: dict[Path, int] = {}
    for file in Path(settings.checkpoints.removeprefix("file://")).rglob("commits/*"):
        if file.name.isdigit():
            newest[file.parent] = max(int(file.name) + 1, newest.get(file.parent, 0))
    return sum(newest.values())
