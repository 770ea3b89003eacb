"""The steps of a check, whichever engine compares.

1. Determine the cut, the current end offsets of the source. Open the stores once the lake contains the live version.
2. Read each store. A record is compared as of its own position, so nothing has to be stopped for the check.
3. Read live stores again while keys are behind the cut, until they reach it or the wait ends: an event in flight is not a fault.
4. Replay the log up to each stored position.
5. Evaluate the expectations, and list the failures.
6. If all are met, keep the replayed records, from which incremental checks go on.

An incremental check reads the keys that have events since the stores were verified, and replays only these events.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from include.nodes.record_requests import KeySample
from include.position import Offsets
from include.quality.check import CheckRequest, CheckResult, FullCheckNeededError, Mode
from include.replay.check.comparison import create_comparison, create_late, create_replicas, cuts_of
from include.replay.check.evaluation import Evaluation
from include.replay.check.increment import create_changed
from include.replay.check.key_counts import KeyCounts
from include.replay.check.marks import keep_verified
from include.replay.check.readings import Reading, Store
from include.replay.check.tables import CheckTables
from include.replay.check.target import CheckTarget
from include.replay.check.verified import VerifiedRecords, VerifiedStore
from include.words import plural

LOG = logging.getLogger("foldlake.quality")
POLL_S = 0.5


class Check(ABC):
    """One check with an engine: its tables and its stores.

    fields: of a record -> its type in DuckDB. kept: the verified records. cuts: those of the replicas, once the stores are read.
    """

    def __init__(
        self,
        tables: CheckTables,
        target: CheckTarget,
        request: CheckRequest,
        fields: Mapping[str, str],
        stores: Sequence[Store],
        kept: VerifiedStore,
    ) -> None:
        self.tables = tables
        self.target = target
        self.request = request
        self.fields = fields
        self.stores = stores
        self.kept = kept
        self.verified: VerifiedRecords | None = None
        self.cuts: list[Offsets] = []

    def run(self) -> CheckResult:
        """Return the result, without its start and duration; errors as those of `include.replay.check.run.run_check`."""
        target, request = self.target, self.request
        what = f"{target.model.name} v{target.version.number}, {request.mode}: {', '.join(request.stores)}"
        LOG.info("checking %s, up to offsets %s", what, dict(target.cut))
        counts = KeyCounts(self.stores) if request.mode is not Mode.FULL else None
        if request.mode is Mode.INCREMENTAL:
            self.verified = self.kept.read(request.stores)
            self._read_changed(self.verified)
        else:
            is_sample = request.mode is Mode.SAMPLE and counts is not None
            keys = target.settings.quality.sample_keys
            self.read_all(counts.sample(request.run_id, keys) if is_sample and counts else KeySample())
        readings = [self._read(store) for store in self.stores]
        replicas = [replica for reading in readings for replica in reading.replicas]
        self.cuts = cuts_of(replicas)
        create_replicas(self.tables, replicas, self.cuts)
        self._wait_for_late()
        self.replay()
        create_comparison(self.tables, self.fields)
        evaluation = Evaluation(
            self.tables,
            target,
            request,
            self.fields,
            self.events,
            list(zip(self.stores, readings, strict=True)),
            self.cuts,
            counts,
            self.verified,
        )
        result = replace(evaluation.result(), event_sources=self.event_sources)
        is_kept = request.mode is not Mode.SAMPLE and self.kept.fingerprint is not None
        if not result.passed or not is_kept or result.unwritten_total:
            return result
        return replace(result, verified=keep_verified(evaluation, self.kept))

    @property
    @abstractmethod
    def events(self) -> int:
        """The number of events that were replayed."""

    @property
    def event_sources(self) -> str:
        """Where the events were read from, in words."""
        return ""

    @abstractmethod
    def read_all(self, sample: KeySample) -> None:
        """Read the events below the cut, and compare the keys of a sample."""

    @abstractmethod
    def read_since(self, since: Offsets) -> None:
        """Read the events below the cut, from these offsets on, into `events`."""

    @abstractmethod
    def limit_to(self, number: int) -> None:
        """Compare only the keys in `compared`, so many."""

    @abstractmethod
    def reread(self, stores: Sequence[Store]) -> None:
        """Replace the records in `late` of these stores by their current ones, perhaps further ones, too."""

    @abstractmethod
    def require(self) -> None:
        """Create `log_keys`, `required` and `absences`, given the events that were read."""

    @abstractmethod
    def require_again(self) -> None:
        """Remove from `required` what items have left while the check waited."""

    @abstractmethod
    def replay(self) -> None:
        """Create `replayed` for what was stored when it was last read, and the tables of `require`."""

    def _read_changed(self, verified: VerifiedRecords) -> None:
        """Compare only keys with events since they were verified."""
        if verified.since.keys() != self.target.cut.keys() or not self.target.cut.covers(verified.since):
            raise FullCheckNeededError(
                "the source topic has other partitions or fewer events than were verified"
            )
        self.read_since(verified.since)
        number = create_changed(self.tables)
        LOG.info("%s with new events since the verification", plural(number, "key"))
        self.tables.create("compared", "SELECT key FROM changed")
        self.limit_to(number)

    def _read(self, store: Store) -> Reading:
        started_s = time.monotonic()
        reading = store.read()
        LOG.info("%s: read in %.1f s", store.name, time.monotonic() - started_s)
        if self.verified is None:
            return reading
        since = self.verified.marks[str(store.name)].verified_up_to
        if not all(replica.cut.covers(since) for replica in reading.replicas):
            raise FullCheckNeededError(
                f"the {store.name} was replaced by one that is complete up to lower offsets"
            )
        return replace(reading, replicas=tuple(replace(replica, since=since) for replica in reading.replicas))

    def _wait_for_late(self) -> None:
        """Read the replicas again that lack a required event, until they have it or the wait ends."""
        live = [store for store in self.stores if store.may_catch_up]
        if not live:
            return
        self.require()
        names = [str(store.name) for store in live]
        deadline_s = time.monotonic() + self.target.settings.quality.wait_s
        while late := create_late(self.tables, names):
            if self.target.model.items_leave:
                # A later event may have ended an item that a replica lacks.
                self.require_again()
                late = create_late(self.tables, names)
            if not late or time.monotonic() > deadline_s:
                return
            LOG.info("%s records are behind the cut: reading them again", f"{late:,}")
            time.sleep(POLL_S)
            self.reread(live)


def full_if_needed(request: CheckRequest, run: Callable[[CheckRequest], CheckResult]) -> CheckResult:
    """Run a check, of all keys where an incremental one is not possible; return its result with its start and duration."""
    started_s, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    try:
        result = run(request)
    except FullCheckNeededError as reason:
        LOG.info("checking all keys, because %s", reason)
        result = replace(run(replace(request, mode=Mode.FULL)), full_check_reason=str(reason))
    return replace(result, started_at=started_at, duration_s=time.monotonic() - started_s)
