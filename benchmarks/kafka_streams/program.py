"""The Kafka Streams program: its jars, its compilation, its settings and its process."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.deposits import BALANCE
from include.errors import FoldlakeError
from include.kafka.schema_registry import SchemaRegistry
from include.settings import CHECKOUT, Settings
from include.spark.kafka_clients import java_settings
from stack.provisioning.launcher import setting
from stack.provisioning.layout import Layout, read_lock
from stack.supervision.stray_processes import MARKER
from stack.tools import Tools

JARS_LOCK = Path(__file__).with_name("jars.lock")
SOURCE = Path(__file__).with_name("BalanceStreams.java")
# From the broker's jars: what Kafka's client needs to compress, JSON for Avro, and logging.
CLIENT_ARTIFACTS = {
    "lz4-java",
    "snappy-java",
    "zstd-jni",
    "jackson-annotations",
    "jackson-core",
    "jackson-databind",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j-impl",
}
APPLICATION = "balance-streams"
# Kafka Streams names it after the application and the store.
STREAMS_CHANGELOG = f"{APPLICATION}-balance-changelog"
JAVA_RELEASE = "17"
GUARANTEES = {"eos": "exactly_once_v2", "alos": "at_least_once"}


class BuildError(FoldlakeError):
    """The program could not be built."""


@dataclass(frozen=True)
class StreamsOptions:
    """Settings of Kafka Streams that a user may change.

    commit_interval_ms: None for the default of the guarantee.
    """

    threads: int
    linger_ms: int
    commit_interval_ms: int | None

    def properties(self) -> dict[str, str]:
        """Return them by Kafka's names."""
        found = {"num.stream.threads": str(self.threads), "producer.linger.ms": str(self.linger_ms)}
        if self.commit_interval_ms is not None:
            found["commit.interval.ms"] = str(self.commit_interval_ms)
        return found


@dataclass(frozen=True)
class Program:
    """The compiled program and its class path."""

    java: Path
    class_path: tuple[Path, ...]

    @classmethod
    def build(cls, tools: Path, classes: Path) -> "Program":
        """Download the jars if they are missing, and compile the program into a folder.

        Raises:
            BuildError: there is no Java compiler, or a download or the compilation failed.
        """
        compiler = shutil.which("javac")
        if compiler is None:
            raise BuildError(
                "This benchmark compiles a Java program, and there is no javac on the PATH. Hint: install a JDK"
                f" {JAVA_RELEASE} or newer (Debian and Ubuntu: openjdk-17-jdk-headless), then run the command again."
            )
        jars = _jars(tools)
        _run(
            [compiler, "--release", JAVA_RELEASE, "-d", classes, "-cp", _joined(jars), SOURCE],
            "does not compile",
        )
        # The Java of Foldlake's driver, so that both run on the same one.
        return cls(Tools(tools).java25, (classes, *jars))

    def launch(self, settings: Settings, guarantee: str, options: StreamsOptions) -> subprocess.Popen[bytes]:
        """Start the program with a guarantee of GUARANTEES; its process ends with the stack of these settings."""
        home = settings.home / "kafka-streams"
        home.mkdir(exist_ok=True)
        configuration = home / "application.properties"
        lines = properties(settings, guarantee) | options.properties()
        configuration.write_text(
            "".join(f"{name}={value}\n" for name, value in lines.items()), encoding="utf-8"
        )
        command = [
            str(self.java),
            # Heap and collector as in the driver.
            f"-Xmx{settings.stream.driver_memory_mb}m",
            "-XX:+UseParallelGC",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow",
            # That of the broker.
            f"-Dlog4j2.configurationFile={settings.home / 'kafka' / 'log4j2.properties'}",
            "-cp",
            _joined(self.class_path),
            SOURCE.stem,
            str(configuration),
        ]
        environment = {**os.environ, MARKER: str(settings.home.resolve())}
        with log_path(settings).open("ab") as output:
            return subprocess.Popen(command, cwd=home, env=environment, stdout=output, stderr=output)


def describe(options: StreamsOptions) -> str:
    """Return the version of Kafka Streams and the settings that a user may change."""
    (version,) = (file.version for file in read_lock(JARS_LOCK) if file.artifact == "kafka-streams")
    named = [f"{name}={value}" for name, value in options.properties().items()]
    return ", ".join((f"Kafka Streams {version}", *named))


def log_path(settings: Settings) -> Path:
    """Return the file that the program's log goes to."""
    return settings.home / "logs" / "kafka-streams.log"


def properties(settings: Settings, guarantee: str) -> dict[str, str]:
    """Return the settings of Kafka Streams that are always the same, and the program's own."""
    state_schema = BALANCE.state_schema
    registry = SchemaRegistry(settings.registry.connection)
    return {
        **java_settings(settings.kafka_connection),
        "application.id": APPLICATION,
        "processing.guarantee": GUARANTEES[guarantee],
        "state.dir": str(settings.home / "kafka-streams" / "state"),
        # A static member: without it, a restart waits until the session of the ended process expires, after 45 s.
        "group.instance.id": APPLICATION,
        "balance.registry.url": settings.registry.url,
        "balance.source.topic": BALANCE.source_topic,
        "balance.state.schema": state_schema.text,
        "balance.state.schema.id": str(registry.register(STREAMS_CHANGELOG, state_schema)),
    }


def _jars(tools: Path) -> tuple[Path, ...]:
    layout = Layout(tools)
    mirror = setting("FOLDLAKE_MAVEN_MIRROR", dict(os.environ))
    _run(
        [layout.python("bootstrap"), "-P", "-m", "stack.provisioning.jars", JARS_LOCK, layout.root],
        "lacks its jars",
        PYTHONPATH=str(CHECKOUT),
        FOLDLAKE_MAVEN_MIRROR=mirror,
    )
    needed = [file for file in read_lock() if file.jar_set == "kafka" and file.artifact in CLIENT_ARTIFACTS]
    return tuple(layout.jars(file.jar_set) / file.name for file in (*read_lock(JARS_LOCK), *needed))


def _run(command: list[str | Path], problem: str, **environment: str) -> None:
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"{SOURCE.name} {problem}:\n{(done.stdout + done.stderr)[-2000:]}")


def _joined(paths: tuple[Path, ...]) -> str:
    return os.pathsep.join(map(str, paths))
