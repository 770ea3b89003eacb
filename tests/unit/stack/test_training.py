"""The trainings of the JVMs: their events, their failures, and that they do not touch the user's servers."""

import json
import os
import sys
from pathlib import Path

import fastavro
import pytest

from include.declarations.load import load_catalog
from include.kafka.events import event_key
from include.kafka.record_schema import RecordSchema
from stack.provisioning import trainings
from stack.provisioning.layout import LAKE_ARCHIVE, Layout
from stack.provisioning.trainings import TRAININGS, Training, train
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


def write_java(layout: Layout, home: Path, build: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "release").write_text(f'JAVA_VERSION="{build}"\n')
    layout.stamp("java").write_text(f"identity\n{home}\n")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A tools directory whose Python is a script that the test writes."""
    layout = Layout(tmp_path)
    layout.stamp("java").parent.mkdir()
    write_java(layout, tmp_path / "java", "17.0.15")
    layout.python("main").parent.mkdir(parents=True)
    return layout


def replace_python(layout: Layout, code: str) -> None:
    layout.python("main").write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n")
    layout.python("main").chmod(0o755)


EACH = pytest.mark.parametrize("training", TRAININGS, ids=[one.part for one in TRAININGS])


@EACH
def test_a_failed_training_does_not_keep_commands_from_running(
    layout: Layout, training: Training, capfd: pytest.CaptureFixture[str]
) -> None:
    training.file(layout).write_text("of another class path")
    replace_python(layout, "sys.exit('no memory')")

    train(layout, training)

    assert layout.is_ready(training.part)
    assert not training.file(layout).exists(), "the old file does not fit"
    error = capfd.readouterr().err
    assert "no memory" in error
    assert f"remove {layout.stamp(training.part)}" in error


@EACH
def test_a_training_does_not_get_the_settings_of_the_user(
    layout: Layout, training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FOLDLAKE_KAFKA_BOOTSTRAP", "FOLDLAKE_HOME", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.setenv(name, "the user's")
    replace_python(layout, "json.dump(dict(os.environ), open(sys.argv[-1], 'w'))")

    train(layout, training)

    environment = json.loads(training.file(layout).read_text())
    assert "the user's" not in environment.values()
    assert environment["FOLDLAKE_TOOLS"] == str(layout.root)
    assert environment["JAVA_HOME"] == str(layout.java_home)
    assert environment["PATH"] == os.environ["PATH"]


@EACH
def test_an_image_trains_once_it_has_the_code(
    layout: Layout, training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "CHECKOUT", tmp_path)

    train(layout, training)

    assert not layout.is_ready(training.part)


def test_the_archive_of_the_lake_is_made_again_for_another_build_of_java(
    layout: Layout, tmp_path: Path
) -> None:
    layout.mark_ready(LAKE_ARCHIVE)
    assert layout.is_ready(LAKE_ARCHIVE)

    write_java(layout, tmp_path / "java", "17.0.16")

    assert not layout.is_ready(LAKE_ARCHIVE)
