"""The files listed in a lock, such as stack/jars.lock, and their paths in the tools directory. Standard library only."""

from dataclasses import dataclass
from pathlib import Path

from stack.provisioning.layout import JARS_LOCK, Layout


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
