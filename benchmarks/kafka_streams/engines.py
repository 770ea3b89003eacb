"""What is compared: Foldlake at a pace, and Kafka Streams with a processing guarantee, behind one interface."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import Message

from benchmarks.kafka_streams.commit_times import CommitTimes
from benchmarks.kafka_streams.program import STREAMS_CHANGELOG, Program, StreamsOptions, log_path
from benchmarks.latency import wait_for_real_time
from benchmarks.support.changelog_times import appended_ms
from benchmarks.support.deposits import BALANCE, CHANGELOG
from include.kafka.log_reading import end_offsets, log_consumer, newest_record
from include.kafka.state_record import decode_state_record
from include.position import Offsets
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from tests.support import unsupervised_driver
from tests.support.stream_process import kill_jvm
from tests.support.waiting import wait_until

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
STATE = re.compile(r"^state (\w+)$", re.MULTILINE)
# More than the markers at the end of a partition, and few enough to read them often.
TAIL_RECORDS = 1_000


class Engine(Protocol):
    """A program that folds deposits into a changelog."""

    @property
    def name(self) -> str:
        """The name in the report."""

    @property
    def changelog(self) -> str:
        """The topic of its state records, in Foldlake's format."""

    @property
    def is_exactly_once(self) -> bool:
        """Whether the balances are exact after it was killed."""

    def launch(self, settings: Settings) -> subprocess.Popen[bytes]:
        """Start it."""

    def stop(self, settings: Settings, process: subprocess.Popen[bytes]) -> None:
        """Stop it gracefully."""

    def kill(self, settings: Settings, process: subprocess.Popen[bytes]) -> None:
        """Kill it with -9, and wait until it has ended."""

    def wait_until_running(self, settings: Settings) -> None:
        """Wait until it folds events as they arrive."""

    def is_caught_up(self, settings: Settings) -> bool:
        """Return whether its changelog contains all events."""

    def visible_ms(self, settings: Settings) -> Callable[[Message], int]:
        """Return what gives the time from which a reader of committed records can see a state record."""


@contextmanager
def running(engine: Engine, settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """Run an engine for the duration of the block, then stop it gracefully."""
    process = engine.launch(settings)
    try:
        yield process
    finally:
        engine.stop(settings, process)


@dataclass(frozen=True)
class Foldlake:
    """Foldlake's stream driver at a pace, without a standby."""

    pace: str
    changelog: str = CHANGELOG
    is_exactly_once: bool = True

    @property
    def name(self) -> str:
        """The name in the report."""
        return f"foldlake-{self.pace}"

    def launch(self, settings: Settings) -> subprocess.Popen[bytes]:
        """Start the driver."""
        return unsupervised_driver.launch(settings.changed(stream_pace=self.pace))

    def stop(self, settings: Settings, process: subprocess.Popen[bytes]) -> None:
        """Stop the driver gracefully."""
        unsupervised_driver.end(settings, process)

    def kill(self, settings: Settings, process: subprocess.Popen[bytes]) -> None:
        """Kill the driver's JVM."""
        kill_jvm(settings, process)

    def wait_until_running(self, settings: Settings) -> None:
        """Wait until the driver is in real-time mode."""
        wait_for_real_time(settings)

    def is_caught_up(self, settings: Settings) -> bool:
        """Return whether the stream's lag is zero; a new stream has no version yet."""
        status = read_stream_status(settings)
        return bool(status.of_kind(FlowKind.FOLD)) and status.events_behind == 0

    def visible_ms(self, _settings: Settings) -> Callable[[Message], int]:
        """State records are visible as soon as they are appended."""
        return appended_ms


@dataclass(frozen=True)
class KafkaStreams:
    """The Kafka Streams program with a processing guarantee of GUARANTEES."""

    program: Program
    guarantee: str
    options: StreamsOptions
    changelog: str = STREAMS_CHANGELOG

    @property
    def name(self) -> str:
        """The name in the report."""
        return f"streams-{self.guarantee}"

    @property
    def is_exactly_once(self) -> bool:
        """Whether it writes in transactions."""
        return self.guarantee == "eos"

    def launch(self, settings: Settings) -> subprocess.Popen[bytes]:
        """Start the program, with a log of its own."""
        log_path(settings).unlink(missing_ok=True)
        return self.program.launch(settings, self.guarantee, self.options)

    def stop(self, _settings: Settings, process: subprocess.Popen[bytes]) -> None:
        """Send SIGTERM, on which the program commits and closes."""
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)

    def kill(self, _settings: Settings, process: subprocess.Popen[bytes]) -> None:
        """Kill the JVM."""
        process.kill()
        process.wait(STOP_TIMEOUT_S)

    def wait_until_running(self, settings: Settings) -> None:
        """Wait until all tasks run."""

        def runs() -> bool:
            states = STATE.findall(log_path(settings).read_text(encoding="utf-8"))
            assert "ERROR" not in states, f"Kafka Streams failed: {log_path(settings)}"
            return states[-1:] == ["RUNNING"]

        wait_until(runs, "Kafka Streams runs", START_TIMEOUT_S)

    def is_caught_up(self, settings: Settings) -> bool:
        """Return whether the newest state records are of the newest events."""
        partitions = BALANCE.partitions(settings.topics)
        consumer = log_consumer(settings.kafka_connection)
        try:
            ends = Offsets.of_ends(end_offsets(consumer, BALANCE.source_topic, partitions))
            folded = Offsets()
            for partition in range(partitions):
                newest = newest_record(consumer, self.changelog, partition, lambda _: True, TAIL_RECORDS)
                if newest is not None:
                    value = newest.value() or b""
                    folded = folded.with_event(
                        decode_state_record(value, lambda _id: BALANCE.state_schema).position
                    )
            return folded.covers(ends)
        finally:
            consumer.close()

    def visible_ms(self, settings: Settings) -> Callable[[Message], int]:
        """State records of a transaction are visible once it is committed."""
        return CommitTimes(settings, self.changelog).committed_ms if self.is_exactly_once else appended_ms
