"""How the tests are divided among worker processes: what stays together, and how long each part takes."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

DURATIONS = Path(__file__).with_name("durations.txt")
# Of a part that is not in the file.
UNKNOWN_S = 60.0
STATIC = "tests/static"
# Its modules share no fixtures.
SINGLE_MODULES = "tests/integration"


def part_of(nodeid: str) -> str:
    """Return the part of the tests that a test belongs to: one worker runs a part, because its tests share their fixtures.

    A part is a folder. The folders inside a folder of `tests/integration` are one part, and each module directly in
    `tests/integration` is one.
    """
    module = nodeid.partition("::")[0]
    folder = module.rpartition("/")[0]
    if folder == SINGLE_MODULES:
        return module
    parts = folder.split("/")
    if len(parts) > 3 and folder.startswith(f"{SINGLE_MODULES}/"):
        return "/".join((*parts[:3], "*"))
    return folder


def read_durations(path: Path = DURATIONS) -> dict[str, float]:
    """Return part -> seconds."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {part: float(seconds) for seconds, part in (line.split() for line in lines)}


def order_of(nodeid: str, durations: Mapping[str, float]) -> tuple[float, str]:
    """Return what to sort a test by: static checks first, then the longest parts, so that all workers end together."""
    part = part_of(nodeid)
    return (0.0 if part == STATIC else 1 / durations.get(part, UNKNOWN_S)), part


class DurationRecorder:
    """Adds up how long the parts take, and writes the file."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, nodeid: str, seconds: float) -> None:
        """Add the time of a test, or of its fixtures."""
        self.seconds[part_of(nodeid)] += seconds

    def write(self, path: Path = DURATIONS) -> None:
        """Replace the times of the parts that have run, longest first."""
        durations = (read_durations(path) if path.exists() else {}) | self.seconds
        ordered = sorted(durations.items(), key=lambda item: (-item[1], item[0]))
        path.write_text(
            "".join(f"{max(1, seconds):.0f} {part}\n" for part, seconds in ordered), encoding="utf-8"
        )
