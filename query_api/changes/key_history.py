"""The newest state of the keys that changed last: which record is outdated, and where an item was before."""

from collections import OrderedDict
from typing import NamedTuple

from include.position import supersedes

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
