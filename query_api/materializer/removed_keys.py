"""The keys that were removed last. After a restart, the stream driver repeats records, also older ones of items that have ended since."""

from collections import OrderedDict

# The driver repeats at most what it has written since its last commit. Some 100 bytes each.
MAX_KEYS = 200_000


class RemovedKeys:
    """Up to MAX_KEYS removed keys, each with the number of events up to its removal."""

    def __init__(self) -> None:
        self._event_counts: OrderedDict[bytes, int] = OrderedDict()

    def add(self, key: bytes, event_count: int) -> None:
        """Note a removal; forget the oldest one if there are too many."""
        self._event_counts[key] = max(event_count, self._event_counts.pop(key, 0))
        if len(self._event_counts) > MAX_KEYS:
            self._event_counts.popitem(last=False)

    def is_outdated(self, key: bytes, event_count: int) -> bool:
        """Return whether a record with this number of events was written before the key was removed."""
        return event_count <= self._event_counts.get(key, -1)
