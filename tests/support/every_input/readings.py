"""A read model of sensors' readings, whose fields have the names of internal columns, and numbers that JSON lacks."""

import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.declarations.read_model import ReadModel, StateField, decimal_type

NAME = "readings"
MODULE = "from tests.support.every_input.readings import DECLARATIONS\n"
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "foldlake.test",
    "foldlake.key": "sensor",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "reason", "type": "string"},
        {"name": "offset", "type": "long"},
        {"name": "value", "type": "double"},
        {"name": "divisor", "type": "long"},
        {"name": "exact", "type": decimal_type(18, 2)},
        {"name": "ticks", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "code", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "partition", "type": ["null", "long"], "default": None},
    ],
}
# Times a power of two, so that sums of doubles are exact.
WHOLE = 64
MOST = 2**63 - 1


def sensor() -> Column:
    """Key: the sensor."""
    return F.col("sensor")


def newest_and_sums() -> Mapping[str, Column]:
    """Fold: of the newest event its reason and partition, extremes, and sums; a divisor of zero fails, and ticks may overflow."""
    return {
        "reason": F.max_by("reason", "record:offset"),
        "partition": F.max_by("partition", "record:offset"),
        "offset": F.max("offset"),
        "value": F.max("value"),
        "share": F.sum(F.lit(WHOLE) / F.col("divisor")),
        "total": F.sum("exact"),
        "ticks": F.sum("ticks"),
    }


def merged() -> Mapping[str, Column]:
    """Merge: the same of the states of parts of the events."""
    newest = {name: F.max_by(name, "source_offset") for name in ("reason", "partition")}
    sums = {name: F.sum(name) for name in ("share", "total", "ticks")}
    return newest | sums | {name: F.max(name) for name in ("offset", "value")}


READ_MODEL = ReadModel(
    name=NAME,
    source_topic=NAME,
    event_types=("Reading",),
    key=sensor,
    state=(
        StateField("reason", "string"),
        StateField("partition", ["null", "long"]),
        StateField("offset", "long"),
        StateField("value", "double"),
        StateField("share", "double"),
        StateField("total", decimal_type(28, 2)),
        StateField("ticks", "long"),
    ),
    folds={1: newest_and_sums},
    merges={1: merged},
)
DECLARATIONS = [READ_MODEL]


def write_declarations(folder: Path) -> None:
    """Add the read model and its event type to a folder of declarations."""
    (folder / "readings.py").write_text(MODULE)
    schemas = folder / "schemas"
    schemas.mkdir(exist_ok=True)
    (schemas / "Reading.avsc").write_text(json.dumps(SCHEMA))


def reading(key: str, number: int, at: datetime, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of any type
    """Return the fields of an event; `number` is different for each."""
    return {
        "sensor": key,
        "occurredOn": at,
        "reason": f"reason {number}",
        "offset": -number,
        "value": float(number),
        "divisor": 2 ** (number % 5),
        "exact": Decimal(number).scaleb(-2),
        "ticks": number,
        "at": time(1, 2, 3, number),
        "code": str(uuid.UUID(int=number)),
        "partition": None if number % 2 else number,
    } | others


@dataclass
class Expected:
    """What the states must be, computed without Foldlake: one event after the other."""

    folded: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def states(self) -> dict[str, dict[str, Any]]:
        """The states of all keys but those whose sum of ticks is out of range."""
        return {key: state for key, state in self.folded.items() if state["ticks"] <= MOST}

    def add(self, event: Mapping[str, Any]) -> None:
        """Fold an event, the newest of its key."""
        before = self.folded.get(event["sensor"])
        share = WHOLE / event["divisor"]
        self.folded[event["sensor"]] = {
            "reason": event["reason"],
            "partition": event["partition"],
            "offset": event["offset"] if before is None else max(before["offset"], event["offset"]),
            "value": event["value"] if before is None else _larger(before["value"], event["value"]),
            "share": share if before is None else before["share"] + share,
            "total": event["exact"] if before is None else before["total"] + event["exact"],
            "ticks": event["ticks"] if before is None else before["ticks"] + event["ticks"],
        }


def comparable(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with what ProtoJSON has in place of the numbers that JSON lacks: NaN equals nothing."""
    return {
        name: _named(found) if isinstance(found, float) and not math.isfinite(found) else found
        for name, found in state.items()
    }


def _larger(one: float, other: float) -> float:
    """Return the larger number, as Spark's `max` has it: NaN is larger than all others."""
    return math.nan if math.isnan(one) or math.isnan(other) else max(one, other)


def _named(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
