"""Where everything is inside the tools directory, and whether it is what this checkout asks for. Standard library only."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
JARS_LOCK = CHECKOUT / "stack" / "jars.lock"
REQUIREMENTS = {
    "bootstrap": CHECKOUT / "requirements-bootstrap.txt",
    "main": CHECKOUT / "requirements.txt",
    "stream": CHECKOUT / "requirements-stream.txt",
}


@dataclass(frozen=True)
class Layout:
    """The tools directory. A part is ready when its stamp holds the fingerprint of what it was made from."""

    root: Path

    def environment(self, name: str) -> Path:
        """Directory of a virtual environment: `bootstrap`, `main` or `stream`."""
        return self.root / name

    def python(self, environment: str) -> Path:
        """Interpreter of a virtual environment."""
        return self.root / environment / "bin" / "python"

    def jars(self, jar_set: str) -> Path:
        """Directory with the jars of one set of jars.lock."""
        return self.root / "jars" / jar_set

    @property
    def lock(self) -> Path:
        """Locked by the one process that prepares."""
        return self.root / ".lock"

    def stamp(self, part: str) -> Path:
        """File with the fingerprint of a finished part."""
        return self.root / "stamps" / part

    def is_ready(self, part: str) -> bool:
        """Whether the part was made, to the end, from what this checkout holds now."""
        try:
            return self.stamp(part).read_text(encoding="utf-8") == fingerprint(part)
        except OSError:
            return False

    def mark_ready(self, part: str) -> None:
        """Put the stamp, in one step, so that an interruption leaves either a whole stamp or none."""
        write_whole(self.stamp(part), fingerprint(part))

    def mark_unready(self, part: str) -> None:
        """Take the stamp away before the part is changed."""
        self.stamp(part).unlink(missing_ok=True)


PARTS = ("main", "stream", "jars")


def fingerprint(part: str) -> str:
    """Name what a part is made from: a digest of its lock file."""
    source = JARS_LOCK if part == "jars" else REQUIREMENTS[part]
    return hashlib.sha256(source.read_bytes()).hexdigest()


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that a reader finds the old text or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
