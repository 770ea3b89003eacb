"""Finds a Java installation that can run Spark and Kafka. Standard library only."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stack.provisioning.requirements import (
    LONG_TERM_JAVAS,
    NEWEST_JAVA,
    OLDEST_JAVA,
    java_remedy,
    java_text,
)

# Spark 4 starts its JVM with `--add-modules=jdk.incubator.vector`; trimmed runtimes lack it.
NEEDED_MODULE = "jdk.incubator.vector"
USUAL_FOLDERS = ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines")


class JavaNotFoundError(Exception):
    """No usable Java was found; the message lists the candidates and what to install."""


@dataclass(frozen=True)
class Java:
    """One Java installation."""

    home: Path
    version: int


def find_java(environment: dict[str, str] | None = None) -> Java:
    """Return the first usable Java from JAVA_HOME, PATH and the usual folders.

    Raises:
        JavaNotFoundError: no installation is usable.
    """
    rejected: list[str] = []
    for binary in candidates(dict(os.environ) if environment is None else environment):
        try:
            return examine(binary)
        except JavaNotFoundError as error:
            rejected.append(f"  {binary}: {error}")
    found = "\n".join(rejected) if rejected else "  none on the PATH, and JAVA_HOME is not set"
    message = (
        f"Foldlake needs Java {java_text()} for Kafka and Spark. Found:\n{found}\n"
        f"{java_remedy()}, then run the command again."
    )
    raise JavaNotFoundError(message)


def candidates(environment: dict[str, str]) -> list[Path]:
    """Return the `java` binaries to examine, in order, without running them."""
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH")):
        found.append(Path(on_path))
    for folder in USUAL_FOLDERS:
        for version in LONG_TERM_JAVAS:
            found += sorted(Path(folder).glob(f"*{version}*/bin/java"))
            found += sorted(Path(folder).glob(f"*{version}*/Contents/Home/bin/java"))
    return list(dict.fromkeys(found))


def examine(binary: Path) -> Java:
    """Run a `java` binary, and return its home and version.

    Raises:
        JavaNotFoundError: the binary does not run, or Spark does not support it.
    """
    banner = _output(binary, "-version")
    match = re.search(r'version "(\d+)(?:\.(\d+))?', banner)
    if match is None:
        message = f"prints no version: {banner.strip()[:200]}"
        raise JavaNotFoundError(message)
    # Up to Java 8, the version has the form 1.8.
    version = int(match[2]) if match[1] == "1" and match[2] else int(match[1])
    if not OLDEST_JAVA <= version <= NEWEST_JAVA:
        message = f"is Java {version}"
        raise JavaNotFoundError(message)
    if NEEDED_MODULE not in _output(binary, "--list-modules"):
        message = f"is Java {version} without the module {NEEDED_MODULE}"
        raise JavaNotFoundError(message)
    return Java(binary.resolve().parent.parent, version)


def _output(binary: Path, argument: str) -> str:
    try:
        done = subprocess.run([binary, argument], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        message = f"does not run: {error}"
        raise JavaNotFoundError(message) from error
    return done.stdout + done.stderr
