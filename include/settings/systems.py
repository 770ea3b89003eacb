"""The systems that Foldlake comes with, each a folder of declarations in `demo/systems`, and which of them a home has enabled."""

from collections.abc import Iterable
from pathlib import Path

SYSTEMS = Path(__file__).parents[2] / "demo" / "systems"
# In the home: a name on each line. `./foldlake systems` and the demos write it.
FILE = "systems"


def known_systems() -> list[str]:
    """Return the names of all systems, sorted."""
    return sorted(path.name for path in SYSTEMS.iterdir() if path.is_dir() and not path.name.startswith("_"))


def system_folder(name: str) -> Path:
    """Return the folder with a system's declarations."""
    return SYSTEMS / name


def require_systems(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names; raises ValueError for one that no system has."""
    wanted, known = tuple(names), known_systems()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"There is no system {unknown[0]!r}. Available: {', '.join(known)}.")
    return wanted


def systems_of_home(home: Path) -> tuple[str, ...]:
    """Return the systems that are enabled in a home; one that this release does not have is left out."""
    try:
        names = (home / FILE).read_text().split()
    except FileNotFoundError:
        return ()
    known = known_systems()
    return tuple(name for name in names if name in known)
