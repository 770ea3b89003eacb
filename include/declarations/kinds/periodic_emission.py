"""The declaration of a periodic emission: every record of a read model, written to a topic at regular intervals, changed or not.

Its ticks are the multiples of its interval since 1970, by the clock of the machine that writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from include.declarations.kinds.model_output import ModelOutput
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError
from include.kafka.state_record import StateRecord
from include.position import OCCURRED_ON
from include.settings import StreamSettings

# What a field of the output may be made of, beside the fields of the state record.
KEY, TICK = "key", "tick"
# The time of the tick, if the state has a field `tick`.
HIDDEN_TICK = "record:tick"
SHORTEST, LONGEST = timedelta(seconds=0.5), timedelta(days=1)


@dataclass(frozen=True)
class PeriodicEmission(ModelOutput):
    """A periodic emission: all records of a read model, written at each interval.

    name: lower case, digits and dashes; in the header `route` of every record that it writes.
    read_model: name of the read model whose live version it reads.
    output_topic: the topic that it writes, alone.
    output_type: name of the event type that it writes; `foldlake.key` of its schema names the field that is the key.
    fields: for each field of the output's schema, what it is: a field of the state record, `key`, or `tick`, the time of the
        tick: `record:tick`, if the state has a field `tick`.
    every: the interval; None for FOLDLAKE_STREAM_PERIODIC_INTERVAL_S.
    topic: how the output topic is created, where it differs from the settings.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    """

    kind: ClassVar[str] = "periodic emission"
    when: ClassVar[str] = "periodic emissions are written at their own interval"

    name: str
    read_model: str
    output_topic: str
    output_type: str
    fields: Mapping[str, str] = field(hash=False)
    every: timedelta | None = None
    topic: TopicOptions = field(default_factory=TopicOptions)
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        super().__post_init__()
        if self.every is not None:
            require_interval(str(self), self.every)

    def interval_ms(self, settings: StreamSettings) -> int:
        """Return the interval in milliseconds."""
        seconds = settings.periodic_interval_s if self.every is None else self.every.total_seconds()
        return round(seconds * 1000)

    def record(self, key: str, state: StateRecord, tick: datetime) -> dict[str, Any]:
        """Return the fields of the output that a key's state record gives at a tick."""
        known = {
            KEY: key,
            TICK: tick,
            HIDDEN_TICK: tick,
            **state.state,
            **state.position.record_fields(),
            OCCURRED_ON.name: state.occurred_on,
        }
        return {name: known[origin] for name, origin in self.fields.items()}

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError if it does not give the fields of its schema, or writes one that the read model does not have."""
        schema = self.output_schema
        if sorted(self.fields) != sorted(schema.fields):
            raise ReadModelError(
                f"{self.title} gives {sorted(self.fields)}, but {schema.full_name} has {sorted(schema.fields)}."
            )
        # Every version must have what is written: a field that an older fold lacks could not be.
        known = {KEY, TICK, HIDDEN_TICK, *(state.name for state in (*model.state, *POSITION_FIELDS))}
        unknown = sorted(set(self.fields.values()) - known)
        if unknown:
            raise ReadModelError(
                f"{self.title} writes {unknown[0]}, which {model.name} does not have: use {KEY}, {TICK}, or a field of its state."
            )


def require_interval(declaration: str, interval: object) -> None:
    """Raise ReadModelError unless it is an interval within the allowed bounds; `declaration` names what has it."""
    if not isinstance(interval, timedelta) or not SHORTEST <= interval <= LONGEST:
        raise ReadModelError(
            f"every of {declaration} is {interval!r}: allowed: None, or a timedelta from 0.5 s to 1 day."
        )


def tick_at(now_ms: int, interval_ms: int) -> int:
    """Return the newest tick that is not after this time, in milliseconds since 1970."""
    return now_ms - now_ms % interval_ms


def next_tick(now_ms: int, interval_ms: int, written_ms: int | None) -> int:
    """Return the next tick to write, in milliseconds since 1970: the first that has not begun and is after the newest written one.

    Ticks that were missed, as while no driver ran, are not made up for: what the states were then is not known any more.
    written_ms: the newest written tick; None if there is none.
    """
    upcoming = tick_at(now_ms, interval_ms) + interval_ms
    return upcoming if written_ms is None else max(upcoming, tick_at(written_ms, interval_ms) + interval_ms)
