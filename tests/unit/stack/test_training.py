"""The training of the stream driver's JVM: its events, its failures, and that it does not touch the user's servers."""

import json
import os
import sys
from pathlib import Path

import fastavro
import pytest

from include.declarations.load import load_catalog
from include.kafka.events import event_key
from include.kafka.record_schema import RecordSchema
from stack.provisioning import launcher
from stack.provisioning.layout import DRIVER_CACHE, Layout
from stack.train_driver import KEYS, synthetic_event

SCHEMA = {
    "type": "record",
    "name": "Everything",
    "foldlake.key": "shop",
    "fields": [
        {"name": "shop", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "other", "type": "Kind"},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "either", "type": ["int", "string"]},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "count", "type": "long"},
                        {"name": "next", "type": ["null", "Line"]},
                    ],
                },
            },
        },
    ],
}


def is_valid(schema: RecordSchema, number: int) -> bool:
    return bool(fastavro.validate(synthetic_event(schema, number).fields(), schema.parsed()))


def test_events_are_valid_for_every_avro_type() -> None:
    schema = RecordSchema.parse(json.dumps(SCHEMA), "the test")

    assert all(is_valid(schema, number) for number in range(200))
    assert {event_key(synthetic_event(schema, number)) for number in range(3 * KEYS)} == {
        f"training-{number}".encode() for number in range(KEYS)
    }


def test_events_are_valid_for_every_read_model() -> None:
    schemas = [schema for model in load_catalog().models.values() for schema in model.event_schemas]

    assert schemas
    assert all(is_valid(schema, number) for schema in schemas for number in range(100))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A tools directory whose Python is a script that the test writes."""
    layout = Layout(tmp_path)
    layout.stamp("java").parent.mkdir()
    layout.stamp("java").write_text("identity\n/java\n")
    layout.python("main").parent.mkdir(parents=True)
    return layout


def replace_python(layout: Layout, code: str) -> None:
    layout.python("main").write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n")
    layout.python("main").chmod(0o755)


def test_a_failed_training_does_not_keep_commands_from_running(
    layout: Layout, capfd: pytest.CaptureFixture[str]
) -> None:
    layout.driver_cache.write_text("of another class path")
    replace_python(layout, "sys.exit('no memory')")

    launcher._train_driver(layout)

    assert layout.is_ready(DRIVER_CACHE)
    assert not layout.driver_cache.exists(), "the old cache does not fit"
    error = capfd.readouterr().err
    assert "no memory" in error
    assert f"remove {layout.stamp(DRIVER_CACHE)}" in error


def test_the_training_does_not_get_the_settings_of_the_user(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FOLDLAKE_KAFKA_BOOTSTRAP", "FOLDLAKE_HOME", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.setenv(name, "the user's")
    replace_python(layout, "json.dump(dict(os.environ), open(sys.argv[-1], 'w'))")

    launcher._train_driver(layout)

    environment = json.loads(layout.driver_cache.read_text())
    assert "the user's" not in environment.values()
    assert environment["FOLDLAKE_TOOLS"] == str(layout.root)
    assert environment["JAVA_HOME"] == "/java"
    assert environment["PATH"] == os.environ["PATH"]


def test_an_image_trains_once_it_has_the_code(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "CHECKOUT", tmp_path)

    launcher._train_driver(layout)

    assert not layout.is_ready(DRIVER_CACHE)
