"""Paths in the tools directory, the locked files in it, and whether its content matches this checkout. Standard library only."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from include.files import write_atomically

CHECKOUT = Path(__file__).resolve().parent.parent.parent
JARS_LOCK = CHECKOUT / "stack" / "jars.lock"
REQUIREMENTS = {
    "bootstrap": CHECKOUT / "requirements-bootstrap.txt",
    "main": CHECKOUT / "requirements.txt",
    "stream": CHECKOUT / "requirements-stream.txt",
    "docs": CHECKOUT / "requirements-docs.txt",
}


@dataclass(frozen=True)
class Layout:
    """The tools directory. A part is ready when its stamp contains the fingerprint of its lock file."""

    root: Path

    def environment(self, name: str) -> Path:
        """Directory of a virtual environment: `bootstrap`, `main`, `stream`, or `docs`, which only `./foldlake docs` installs."""
        return self.root / name

    def python(self, environment: str) -> Path:
        """Interpreter of a virtual environment."""
        return self.root / environment / "bin" / "python"

    def jars(self, jar_set: str) -> Path:
        """Directory with the jars of one set of jars.lock."""
        return self.root / "jars" / jar_set

    @property
    def driver_cache(self) -> Path:
        """File with the ahead-of-time cache of the stream driver's JVM; missing if its training has failed."""
        return self.root / "driver.aot"

    @property
    def lake_archive(self) -> Path:
        """File with the classes of the lake's JVMs; missing if its training has failed."""
        return self.root / "lake.jsa"

    @property
    def java_home(self) -> Path:
        """The home of the Java that was found.

        Raises:
            OSError: none was.
        """
        lines = self.stamp("java").read_text(encoding="utf-8").splitlines()
        return Path(lines[1]) if len(lines) > 1 else Path()

    @property
    def lock(self) -> Path:
        """File that is locked during the preparation."""
        return self.root / ".lock"

    def stamp(self, part: str) -> Path:
        """File with the fingerprint of a finished part."""
        return self.root / "stamps" / part

    def is_ready(self, part: str) -> bool:
        """Whether the part is complete, and was created from this checkout's lock file."""
        try:
            return self.stamp(part).read_text(encoding="utf-8") == self._content(part)
        except OSError:
            return False

    def mark_ready(self, part: str) -> None:
        """Write the stamp, atomically: an interruption leaves a complete stamp or none."""
        write_atomically(self.stamp(part), self._content(part))

    def mark_unready(self, part: str) -> None:
        """Remove the stamp, before changing the part."""
        self.stamp(part).unlink(missing_ok=True)

    def _content(self, part: str) -> str:
        """Return the content of a finished part's stamp: an archive of classes is valid for one build of Java."""
        if part != LAKE_ARCHIVE:
            return fingerprint(part)
        return f"{fingerprint(part)}\n{self.java_home}\n{java_build(self.java_home)}\n"


# What is downloaded, and what is made of it.
DOWNLOADED = ("main", "stream", "jars")
DRIVER_CACHE = "driver-cache"
LAKE_ARCHIVE = "lake-archive"
TRAINED = (DRIVER_CACHE, LAKE_ARCHIVE)
PARTS = (*DOWNLOADED, *TRAINED)

# The code that decides what the cache, and the archive, contain.
STREAM_JVM = CHECKOUT / "stack" / "launchers" / "stream_jvm.py"
CACHE_CODE = (
    STREAM_JVM,
    CHECKOUT / "stack" / "train_driver.py",
)
ARCHIVE_CODE = (
    STREAM_JVM,
    CHECKOUT / "stack" / "launchers" / "lake_jvm.py",
    CHECKOUT / "stack" / "train_lake.py",
)


def fingerprint(part: str) -> str:
    """Return the digest of the files from which a part is made, such as its lock file."""
    return hashlib.sha256(b"".join(source.read_bytes() for source in _sources(part))).hexdigest()


def java_build(home: Path) -> str:
    """Return what identifies a build of Java: the properties that it comes with, or the size of its library without them."""
    try:
        return (home / "release").read_text(encoding="utf-8")
    except OSError:
        return str((home / "lib" / "server" / "libjvm.so").stat().st_size)


def _sources(part: str) -> tuple[Path, ...]:
    if part == DRIVER_CACHE:
        return (REQUIREMENTS["stream"], JARS_LOCK, *CACHE_CODE)
    if part == LAKE_ARCHIVE:
        # Hadoop's client is one of the stream's.
        return (REQUIREMENTS["main"], REQUIREMENTS["stream"], JARS_LOCK, *ARCHIVE_CODE)
    return (JARS_LOCK if part == "jars" else REQUIREMENTS[part],)


@dataclass(frozen=True)
class LockedFile:
    """One line of a lock."""

    jar_set: str
    group: str
    artifact: str
    version: str
    packaging: str
    classifier: str
    sha256: str
    size_bytes: int

    @property
    def name(self) -> str:
        """File name in a Maven repository."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.{self.packaging}"


def read_lock(path: Path = JARS_LOCK) -> list[LockedFile]:
    """Read `set group:artifact:version[:packaging:classifier] sha256 bytes` lines."""
    files = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        jar_set, coordinate, sha256, size_bytes = line.split()
        group, artifact, version, packaging, classifier = (*coordinate.split(":"), "jar", "")[:5]
        files.append(
            LockedFile(jar_set, group, artifact, version, packaging, classifier, sha256, int(size_bytes))
        )
    return files


def unpacked(layout: Layout, file: LockedFile) -> Path:
    """Return the directory that an archive is unpacked into; it depends on the archive's content."""
    return layout.root / file.jar_set / f"{file.version}-{file.sha256[:12]}"
