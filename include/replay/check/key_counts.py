"""How many keys each replica has in all, where not all are compared: a key lost outside of those shows in the number."""

import time
from collections.abc import Mapping, Sequence

from include.nodes.record_client import STANDBY
from include.replay.check.stores import Store

POLL_S = 0.5


class KeyCounts:
    """The numbers of keys before and after a check.

    all_keys: in the store that has most.
    """

    def __init__(self, stores: Sequence[Store]) -> None:
        self._before: dict[str, int] = {}
        self.all_keys = 0
        for store in stores:
            counts = store.key_counts()
            self._before |= counts
            own = sum(number for replica, number in counts.items() if STANDBY not in replica)
            self.all_keys = max(self.all_keys, own)

    def differences(
        self, store: Store, numbers: Mapping[str, tuple[int, int]], wait_s: float
    ) -> dict[str, int]:
        """Return by replica how many keys it lacks, or has too many.

        It lacks keys if it has fewer than have events below the cut; keys that may still arrive are awaited first. It has too many if it had
        more than the log had at the replay, which came after the count.

        numbers: replica -> the number of keys that it must have, and the number of its keys in the log.
        """
        after = self._after(store, {place: required for place, (required, _) in numbers.items()}, wait_s)
        return {
            place: max(0, required - after.get(place, 0), self._before.get(place, 0) - known)
            for place, (required, known) in numbers.items()
        }

    def _after(self, store: Store, required: Mapping[str, int], wait_s: float) -> Mapping[str, int]:
        deadline_s = time.monotonic() + wait_s
        while True:
            counts = store.key_counts()
            is_short = any(counts.get(place, 0) < number for place, number in required.items())
            if not is_short or not store.may_catch_up or time.monotonic() > deadline_s:
                return counts
            time.sleep(POLL_S)
