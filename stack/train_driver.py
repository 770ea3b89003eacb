"""Makes the ahead-of-time cache of the stream driver's JVM: `python -m stack.train_driver FILE`.

Starts a broker and a schema registry in a temporary home, and a driver that records which classes and methods it uses while it folds
synthetic events: first in batches, then in real time. Its JVM writes the cache when it ends. The settings of this machine are not
used, so nothing is read from or written to the user's servers. The cache has linked classes and profiles of methods: an idle start
takes 11.5 s of the JVM's processor time instead of 17.

The events are not those of `fastavro.utils.generate_one`, whose values are random: strings of any bytes, timestamps outside the years
that are folded, and a new key for each event.
"""

import os
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer

from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.kafka.events import EventSerializer, GenericEvent, event_key
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, ensure_topics
from include.process import lower_priority
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.waiting import wait_for
from stack.launchers import direct_submit, stream_driver
from stack.lifecycle import start
from stack.stack_guard import guarded
from stack.supervision.process import free_ports

# Few keys, each with several events.
KEYS = 1_000


def synthetic_event(schema: RecordSchema, number: int) -> GenericEvent:
    """Return an event that is valid under its schema; its key is one of KEYS."""
    values = _Values(number).record(schema.parsed())
    if schema.key_field is not None:
        values[schema.key_field] = f"training-{number % KEYS}"
    return GenericEvent(schema, values)


class _Values:
    """Makes a value of each Avro type. Source of the types: Apache Avro specification 1.12."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._named: dict[str, Any] = {}
        self._plain: dict[str, Any] = {
            "null": None,
            "boolean": True,
            "int": number % KEYS,
            "long": number % KEYS,
            "float": 0.5,
            "double": 0.5,
            "bytes": b"training",
            "string": f"training-{number}",
        }

    def record(self, schema: dict[str, Any]) -> dict[str, Any]:
        self._named[schema["name"]] = schema
        return {field["name"]: self.value(field["type"]) for field in schema["fields"]}

    def value(self, avro_type: Any) -> Any:  # noqa: ANN401 - an Avro schema is JSON of any shape
        if isinstance(avro_type, list):
            # Also ends a schema that contains itself: such a field is optional.
            return None if "null" in avro_type else self.value(avro_type[0])
        if isinstance(avro_type, str):
            named = self._named.get(avro_type)
            return self._plain[avro_type] if named is None else self.value(named)
        return self._complex(avro_type)

    def _complex(self, avro_type: dict[str, Any]) -> Any:  # noqa: ANN401 - a value of any type
        kind = avro_type["type"]
        if "name" in avro_type:
            self._named[avro_type["name"]] = avro_type
        makers: dict[str, Callable[[], Any]] = {
            "record": lambda: self.record(avro_type),
            "enum": lambda: avro_type["symbols"][0],
            "array": lambda: [self.value(avro_type["items"])],
            "map": lambda: {"training": self.value(avro_type["values"])},
            "fixed": lambda: bytes(avro_type["size"]),
        }
        logical = self._logical(avro_type)
        if logical is not None:
            return logical
        return makers[kind]() if kind in makers else self.value(kind)

    def _logical(self, avro_type: dict[str, Any]) -> Any:  # noqa: ANN401 - a value of any type
        match str(avro_type.get("logicalType", "")):
            case "decimal":
                # One digit, which every precision has.
                return Decimal(self._number % 10).scaleb(-int(avro_type.get("scale", 0)))
            case "date":
                return date(2026, 1, 1)
            case "uuid":
                return str(uuid.UUID(int=self._number))
            case name if name.startswith("timestamp-"):
                return datetime.now(UTC)
        return None


CAUGHT_UP_EVENTS = 20_000
EVENTS_PER_S = 1_000
# About twenty commits.
REAL_TIME_S = 30
# One record in this many is not an event, so that dead letters are written.
JUNK_EVERY = 100
# A busy machine may take minutes: a driver that fails ends sooner.
START_TIMEOUT_S = 900.0
# The JVM writes the cache in about half a minute.
STOP_TIMEOUT_S = 240.0
POLL_S = 0.5
NICENESS = 10
# Of the driver's output, in an error.
LOGGED_LINES = 20
LOGGED_CHARACTERS = 300


class TrainingError(FoldlakeError):
    """The driver did not run, or its JVM wrote no cache."""


def main() -> int:
    """Write the cache to the file that the argument names; returns the exit status."""
    lower_priority(NICENESS)
    try:
        train(Path(sys.argv[1]))
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def train(cache: Path) -> None:
    """Write the cache.

    Raises:
        TrainingError: the driver did not run, or wrote no cache.
        FoldlakeError: a server did not start.
    """
    new = cache.with_name(f".{cache.name}.{os.getpid()}.new")
    # A killed server may still be writing while the home is removed.
    with (
        TemporaryDirectory(prefix="foldlake-training-", ignore_cleanup_errors=True) as folder,
        ExitStack() as servers,
    ):
        home = Path(folder)
        settings = _settings(home)
        servers.enter_context(guarded(settings))
        start(settings, only=("kafka", "registry"))
        try:
            _run_driver(settings, new)
            if not new.is_file():
                raise TrainingError(
                    f"The JVM wrote no ahead-of-time cache. Its output ends with:\n{_end_of_log(home)}"
                )
            new.replace(cache)
        finally:
            for left in (new, new.with_name(f"{new.name}.config")):
                left.unlink(missing_ok=True)


def _run_driver(settings: Settings, new_cache: Path) -> None:
    models = list(load_catalog().models.values())
    sources = [_Source(settings, model) for model in models]
    for source in sources:
        source.append(CAUGHT_UP_EVENTS)
    driver = direct_submit.launch_driver(settings, _log(settings.home), "--write-cache", str(new_cache))
    try:
        runs = wait_for(
            lambda: driver.poll() is not None or read_stream_status(settings).state == "running",
            timeout_s=START_TIMEOUT_S,
            poll_s=POLL_S,
        )
        if not runs or driver.poll() is not None:
            raise TrainingError(
                f"The stream driver did not run. Its output ends with:\n{_end_of_log(settings.home)}"
            )
        end_s = time.monotonic() + REAL_TIME_S
        while time.monotonic() < end_s:
            for source in sources:
                source.append(int(EVENTS_PER_S * POLL_S / len(sources)))
            time.sleep(POLL_S)
        stream_driver.stop(settings.home, timeout_s=STOP_TIMEOUT_S)
    finally:
        if driver.poll() is None:
            driver.kill()
        driver.wait()


class _Source:
    """The source topic of a read model, to which it appends events and some junk."""

    def __init__(self, settings: Settings, model: ReadModel) -> None:
        self._model = model
        self._number = 0
        self._serializer = EventSerializer(SchemaRegistry(settings.registry.connection), model.source_topic)
        topics = model.source_topics(settings.topics)
        ensure_topics(admin_client(settings.kafka_connection), topics, settings.topics.replication_factor)
        self._producer = Producer(
            {
                **settings.kafka_connection.client_settings,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
            }
        )

    def append(self, events: int) -> None:
        for _ in range(events):
            self._number += 1
            schema = self._model.event_schemas[self._number % len(self._model.event_schemas)]
            event = synthetic_event(schema, self._number)
            key = event_key(event) if schema.key_field else None
            value = self._serializer.serialize(event)
            if self._number % JUNK_EVERY == 0:
                value = os.urandom(len(value))
            self._producer.produce(self._model.source_topic, key=key, value=value)
            self._producer.poll(0)
        self._producer.flush(POLL_S * 60)


def _settings(home: Path) -> Settings:
    kafka, controller, registry = free_ports(3)
    return Settings.of(
        home=home,
        kafka_port=kafka,
        kafka_controller_port=controller,
        registry_port=registry,
        stream_spare_queries=0,
        # Both paces are trained, and several commits.
        stream_catch_up_threshold_events=CAUGHT_UP_EVENTS // 2,
        stream_real_time_interval_s=1,
    )


def _log(home: Path) -> Path:
    return home / "logs" / "driver-training.log"


def _end_of_log(home: Path) -> str:
    """Return the last lines of the driver's output, without what the JVM reports of each class that it does not archive."""
    lines = _log(home).read_text(encoding="utf-8", errors="replace").splitlines()
    own = [line[:LOGGED_CHARACTERS] for line in lines if "[aot]" not in line]
    return "\n".join(own[-LOGGED_LINES:])


if __name__ == "__main__":
    sys.exit(main())
