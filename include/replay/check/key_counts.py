"""How many keys each replica has in all, where not all are compared: a key lost outside of those shows in the number."""

import time
import zlib
from collections.abc import Mapping, Sequence
from math import ceil

from include.nodes.record_client import STANDBY
from include.nodes.record_requests import KeySample
from include.position import Offsets
from include.quality.check import StoreName
from include.replay.check.comparison import LACKED, keys_of_replicas
from include.replay.check.readings import Replica, Store
from include.replay.check.tables import CheckTables
from include.replay.check.verified import VerifiedRecords

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

    def sample(self, run_id: str, keys: int) -> KeySample:
        """Return a sample of about so many keys, different ones in each run."""
        buckets = max(1, ceil(self.all_keys / keys))
        return KeySample(zlib.crc32(run_id.encode()) % buckets, buckets)

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


class LogKeyNumbers:
    """The numbers of keys in the log.

    cuts: those of the replicas. verified: the records from which an incremental check continues; `log_keys` then has only the keys with later events. None: it has all keys.
    """

    def __init__(
        self,
        tables: CheckTables,
        cuts: Sequence[Offsets],
        verified: VerifiedRecords | None,
    ) -> None:
        self._tables = tables
        self._cuts = cuts
        self._verified = verified

    def below(self, store: StoreName, cut: Offsets) -> dict[int, int]:
        """Return key partition -> the number of keys with an event below one of the cuts."""
        return self._all(store, self._counted(f"count_if(count_{self._cuts.index(cut)} > 0)"))

    def of_replicas(self, store: StoreName, replicas: Sequence[Replica]) -> dict[str, tuple[int, int]]:
        """Return by replica of a store the number of keys that it must have, and the number of its keys in the log.

        It need not have one whose state cannot be written.
        """
        if not replicas:
            return {}
        required = self.below(store, replicas[0].cut)
        known = self._all(store, self._counted("count(*)"))

        def of(replica: Replica, keys: Mapping[int, int]) -> int:
            return sum(keys.values()) if replica.key_partition is None else keys.get(replica.key_partition, 0)

        keys = LACKED.format(keys=keys_of_replicas(self._cuts))
        lacked = dict(self._tables.rows(f"SELECT place, count(*) FROM ({keys}) AS lacked GROUP BY place"))
        return {one.name: (of(one, required) - lacked.get(one.name, 0), of(one, known)) for one in replicas}

    def _counted(self, count: str) -> dict[int, int]:
        query = f"SELECT key_partition, {count} FROM log_keys GROUP BY key_partition"
        return {int(one): int(number) for one, number in self._tables.rows(query)}

    def _all(self, store: StoreName, found: Mapping[int, int]) -> dict[int, int]:
        """Return the number of all keys, given that of those in `log_keys`."""
        if self._verified is None:
            return dict(found)
        mark = self._verified.marks[str(store)]
        before = self._counted(f"count_if(count_{self._cuts.index(mark.verified_up_to)} > 0)")
        return {p: mark.keys.get(p, 0) + found.get(p, 0) - before.get(p, 0) for p in {*mark.keys, *found}}
