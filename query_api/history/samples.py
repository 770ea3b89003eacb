"""The samples of the last hour, in a ring of fixed size for each read model.

A node's materializer shows them to the HTTP workers through a file in memory.
"""

import json
import shutil
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from include.files import write_atomically
from query_api.memory_folder import memory_folder, memory_folders

INTERVAL_S = 10
KEPT_S = 3600
MAX_SAMPLES = KEPT_S // INTERVAL_S
# Of read models: what is kept has a limit whatever is declared.
MAX_MODELS = 200
FOLDER = "history"
FILE = "samples.json"


@dataclass(frozen=True)
class HistorySample:
    """What was measured of one live version in one interval.

    at: end of the interval, Unix time in whole seconds.
    events_behind: events of the source that were not folded yet; None if a partition's position was not known.
    appended_per_s, folded_per_s: events per second, on average over the interval; None in the first interval of a version.
    latency_ms, latency_max_ms: median and maximum of the time from the append of an event to the commit of its state in this node's
        store, of up to one event a second; None if no event was folded.
    """

    at: int
    events_behind: int | None
    appended_per_s: float | None
    folded_per_s: float | None
    latency_ms: int | None
    latency_max_ms: int | None


COLUMNS = tuple(field.name for field in fields(HistorySample))


class History:
    """The samples of each read model, oldest first. Not thread-safe."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[HistorySample]] = {}

    def add(self, read_model: str, sample: HistorySample) -> None:
        """Add a sample; the oldest one leaves when there are MAX_SAMPLES."""
        if read_model in self._samples or len(self._samples) < MAX_MODELS:
            self._samples.setdefault(read_model, deque(maxlen=MAX_SAMPLES)).append(sample)

    def expire(self, now_s: float) -> None:
        """Remove the samples that are older than KEPT_S at a time (Unix s)."""
        for samples in self._samples.values():
            while samples and samples[0].at < now_s - KEPT_S:
                samples.popleft()
        self._samples = {name: samples for name, samples in self._samples.items() if samples}

    def as_json(self) -> dict[str, dict[str, list[Any]]]:
        """Return read model -> name of a field -> its values, oldest first."""
        return {name: _columns(samples) for name, samples in self._samples.items()}

    @classmethod
    def from_json(cls, models: Mapping[str, Mapping[str, list[Any]]]) -> "History":
        """Read what `as_json` returned; raises KeyError, TypeError or ValueError."""
        history = cls()
        for name, columns in models.items():
            for row in zip(*(columns[column] for column in COLUMNS), strict=True):
                history.add(name, HistorySample(*row))
        return history


def _columns(samples: Iterable[HistorySample]) -> dict[str, list[Any]]:
    rows = [astuple(sample) for sample in samples]
    return {column: [row[index] for row in rows] for index, column in enumerate(COLUMNS)}


def write_history(store_dir: Path, history: History) -> None:
    """Replace the file; raises OSError."""
    write_atomically(memory_folder(store_dir, FOLDER) / FILE, json.dumps(history.as_json()))


def read_columns(store_dir: Path) -> dict[str, Any]:
    """Return the samples as `History.as_json` does; empty before the first ones."""
    for folder in memory_folders(store_dir, FOLDER):
        try:
            found = json.loads((folder / FILE).read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def read_history(store_dir: Path) -> History:
    """Return the samples that an earlier process has left; none if another release wrote them."""
    try:
        return History.from_json(read_columns(store_dir))
    except (KeyError, TypeError, ValueError, AttributeError):
        return History()


def remove_history(store_dir: Path) -> None:
    """Remove the file and its folder."""
    for folder in memory_folders(store_dir, FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
