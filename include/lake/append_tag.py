"""The tag of each commit of an event table: the only record of which events it contains."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from include.known_fields import known_fields
from include.position import Offsets

APPEND = "append"
# Empties the table.
RESTART = "restart"


@dataclass(frozen=True)
class AppendTag:
    """The tag of a commit of `lake/<event table>`, as JSON in Delta's `userMetadata`.

    topic_id: Kafka's id of the topic: a recreated topic of the same name has another one.
    start: partition of the topic -> offset of the first record that the topic had when its first events were appended.
    offsets: partition -> offset of the first record that is not in the table yet.
    operation: append, restart, optimize or vacuum.

    event_types: those of which each event is a row; empty in tags of releases that did not write them.
    generation: how often the table was emptied to append all events again, of which more event types are rows since then.

    The records from `start` to `offsets` are counted. rows: those of the table's event types, each of which is a row. unreadable: those
    that cannot be decoded. other_types: those of other event types. lost: those that the topic deleted before they were read.
    """

    table: str
    source_topic: str
    topic_id: str
    start: Offsets = field(default_factory=Offsets)
    offsets: Offsets = field(default_factory=Offsets)
    operation: str = APPEND
    rows: int = 0
    unreadable: int = 0
    other_types: int = 0
    lost: int = 0
    event_types: tuple[str, ...] = ()
    generation: int = 0

    @property
    def records(self) -> int:
        """The number of offsets between `start` and `offsets`."""
        return self.start.events_until(self.offsets)

    def to_json(self) -> str:
        """Return the tag as the JSON text for `userMetadata`."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> "AppendTag | None":
        """Read a commit's `userMetadata`; None when it is not the tag of an event table."""
        try:
            fields: dict[str, Any] = json.loads(text or "")
            for name in ("start", "offsets"):
                fields[name] = Offsets.from_json(fields[name])
            fields["event_types"] = tuple(fields.get("event_types", ()))
            return cls(**known_fields(cls, fields))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def slice_end(offsets: Offsets, ends: Offsets, records: int) -> Offsets:
    """Return the end of the next slice of a topic: at most about `records` records, of all partitions that have some left alike."""
    unread = [partition for partition, end in ends.items() if end > offsets.of(partition)]
    share = max(1, records // max(1, len(unread)))
    return Offsets({p: max(offsets.of(p), min(end, offsets.of(p) + share)) for p, end in ends.items()})
