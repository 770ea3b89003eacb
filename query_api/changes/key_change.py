"""One change of a key, which clients are told about it, and the newest state of the keys that changed last."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from include.kafka.state_record import StateRecord
from include.position import supersedes
from query_api.lookup.bounding_box import Area

# Some 300 bytes each. After a restart, the stream driver repeats at most what it has written since its last commit.
MAX_KEYS = 100_000

Point = tuple[float, float]


class KeyState(NamedTuple):
    """A key after its newest change: its event count, whether it was removed, and its location, if any."""

    event_count: int
    is_removed: bool
    point: Point | None


class KeyHistory:
    """The states of the MAX_KEYS keys that changed last. Not thread-safe."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._states: OrderedDict[bytes, KeyState] = OrderedDict()
        self._max_keys = max_keys

    def state(self, key: bytes) -> KeyState | None:
        """Return a key's state; None if it has not changed recently."""
        return self._states.get(key)

    def is_outdated_record(self, key: bytes, event_count: int) -> bool:
        """Whether a state record is older than what is known of its key."""
        known = self._states.get(key)
        return known is not None and not supersedes(
            event_count, known.event_count, is_known_removed=known.is_removed
        )

    def is_repeated_removal(self, key: bytes) -> bool:
        """Whether a removal changes nothing, because the key is removed."""
        known = self._states.get(key)
        return known is not None and known.is_removed

    def set(self, key: bytes, state: KeyState) -> None:
        """Note a key's newest state; forget the key that has not changed for the longest time if there are too many."""
        self._states[key] = state
        self._states.move_to_end(key)
        if len(self._states) > self._max_keys:
            self._states.popitem(last=False)


class ChangeKind(StrEnum):
    """What a client is told about a key; the names of the events."""

    CHANGED = "changed"
    LEFT = "left"
    REMOVED = "removed"


@dataclass(eq=False, slots=True)
class ChangeEvent:
    """A record of the changelog that changes a key.

    record: the new state; None if the key is removed. event_count: of the record or of the removal; None for a removal that does not say.
    before: the key's state before; None if it is unknown. frames: the rendered event by kind and form; filled when first needed.
    """

    partition: int
    offset: int
    key: bytes
    record: StateRecord | None
    event_count: int | None
    before: KeyState | None
    after: KeyState
    frames: dict[tuple[ChangeKind, Hashable], bytes] = field(default_factory=dict)


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
