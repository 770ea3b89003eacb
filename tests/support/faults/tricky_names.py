"""Declarations whose fields have the names of columns that Foldlake itself uses, in other cases, too."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.declarations.read_model import ReadModel, StateField

# Of Kafka's records, of decoded events, and of what is computed from events.
OF_EVENTS = """
key value Partition offset timestamp headers topic header reason event_type rating item state window record event count
model_key position source_index output_key
"""
# Of what the jobs compute from states.
OF_STATES = """
has_ended window value offset partition timestamp deleted after_deletion deletion records newest position positions last count
events nth model_key lowest_partition is_source_key place state record stored replayed before after newest_event shuffle_task
newest_item event reason failed
"""
EVENT_NAMES = tuple(OF_EVENTS.split())
STATE_NAMES = tuple(OF_STATES.split())
# A further field of the state: the value, or null if it is odd.
NULLABLE = "changes"


def write_schemas(folder: Path) -> None:
    """Write the schemas of Rating and Review, of Copy, which routes write, and of Secret, whose fields `item` and `secret` are personal."""
    for name, other in (("Rating", ""), ("Review", ""), ("Copy", ""), ("Secret", "secret")):
        names = (*EVENT_NAMES, other) if other else EVENT_NAMES
        personal = {"item", "secret"} if name == "Secret" else set()
        fields: list[dict[str, Any]] = [
            {"name": "subject", "type": "string"},
            {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            *(
                {"name": one, "type": ["null", "long"] if name == "Copy" else "long", "default": None}
                for one in names
            ),
        ]
        for one in fields:
            if name != "Copy":
                one.pop("default", None)
            if one["name"] in personal:
                one["foldlake.privacy"] = "personal"
        record = {
            "type": "record",
            "name": name,
            "namespace": "test",
            "foldlake.key": "subject",
            "fields": fields,
        }
        (folder / f"{name}.avsc").write_text(json.dumps(record))


def event(number: int, subject: str) -> dict[str, Any]:
    """Return the fields of an event: the first number is `number`, the next one 1,000 more, and so on."""
    return {"subject": subject} | {name: 1_000 * i + number for i, name in enumerate(EVENT_NAMES)}


def subject() -> Column:
    """Key: the subject."""
    return F.col("subject")


def newest(states: Mapping[str, str]) -> Mapping[str, Column]:
    """Fold: the newest value of a field of the event for each field of the state."""
    even = F.when(F.col("value") % 2 == 0, F.col("value"))
    found = {name: F.max_by(source, "record:offset") for name, source in states.items()}
    return found | {NULLABLE: F.max_by(even, "record:offset")}


def all_newest() -> Mapping[str, Column]:
    """Merge: the newest of the newest."""
    return {name: F.max_by(name, "source_offset") for name in (*STATE_NAMES, NULLABLE)}


# State field -> the field of the event that it is made of.
SOURCES = {name: EVENT_NAMES[i % len(EVENT_NAMES)] for i, name in enumerate(STATE_NAMES)}


def expected(number: int) -> dict[str, int | None]:
    """Return the state after the event with this number."""
    found: dict[str, int | None] = {
        name: 1_000 * EVENT_NAMES.index(source) + number for name, source in SOURCES.items()
    }
    return found | {NULLABLE: 1_000 * EVENT_NAMES.index("value") + number if number % 2 == 0 else None}


def read_model(name: str, topic: str, event_types: tuple[str, ...], **others: Any) -> ReadModel:  # noqa: ANN401 - any field
    """Return a read model with all of STATE_NAMES, and NULLABLE."""
    return ReadModel(
        name=name,
        source_topic=topic,
        event_types=event_types,
        key=subject,
        state=(*(StateField(one, "long") for one in STATE_NAMES), StateField(NULLABLE, ["null", "long"])),
        folds={1: partial(newest, SOURCES)},
        merges={1: all_newest},
        **others,
    )
