"""One change of a key, and which clients are told about it."""

from dataclasses import dataclass, field
from enum import StrEnum

from include.kafka.state_record import StateRecord
from query_api.changes.key_history import KeyState
from query_api.lookup.bounding_box import Area


class ChangeKind(StrEnum):
    """What a client is told about a key; the names of the events."""

    CHANGED = "changed"
    LEFT = "left"
    REMOVED = "removed"


@dataclass(eq=False, slots=True)
class ChangeEvent:
    """A record of the changelog that changes a key.

    record: the new state; None if the key is removed. event_count: of the record or of the removal; None for a removal that does not say.
    before: the key's state before; None if it is unknown. frames: the rendered event by kind; filled when first needed.
    """

    partition: int
    offset: int
    key: bytes
    record: StateRecord | None
    event_count: int | None
    before: KeyState | None
    after: KeyState
    frames: dict[ChangeKind, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """The changes that a client wants: of one key, of the keys with a prefix, of the items in an area, or all."""

    key: bytes | None = None
    prefix: bytes = b""
    area: Area | None = None

    def kind(self, change: ChangeEvent) -> ChangeKind | None:
        """Return what the client is told about a change; None for nothing.

        An item that is outside an area has left it unless it is known to have been outside before: a client that resumes may have seen
        it inside.
        """
        if self.key is not None and change.key != self.key:
            return None
        if not change.key.startswith(self.prefix):
            return None
        kind = ChangeKind.REMOVED if change.record is None else ChangeKind.CHANGED
        if self.area is None:
            return kind
        box, before = self.area.box, change.before
        if change.record is not None and box.contains(change.after.point):
            return kind
        if before is not None and not box.contains(before.point):
            return None
        return ChangeKind.LEFT if change.record is not None else kind
