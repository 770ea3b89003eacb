"""The tag of a commit of verified records: what an incremental check may go on from."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from include.lake.tags import Tag
from include.position import Offsets


@dataclass(frozen=True)
class VerifiedMark:
    """How far one store is verified.

    verified_up_to: source partition -> offset; every record of the store contained every event below it, and was correct.
    cut_at_s: when that was so (Unix s).
    keys: partition of the key -> number of keys with an event below `verified_up_to`.
    full_run_id, full_at_s: the full check on which this is based, and its time (Unix s).
    table_version: of the Delta table that was read; None for another kind of store.
    """

    verified_up_to: Offsets
    cut_at_s: float
    keys: Mapping[int, int]
    full_run_id: str
    full_at_s: float
    table_version: int | None = None

    def age_s(self, now_s: float) -> float:
        """Return the age of the oldest event that may not be verified (at most), at a time (Unix s); 0 if the clock was set back."""
        return max(0.0, now_s - self.cut_at_s)

    def full_age_s(self, now_s: float) -> float:
        """Return how long ago all keys were checked; 0 if the clock was set back."""
        return max(0.0, now_s - self.full_at_s)


def verified_by_all(marks: Iterable[VerifiedMark]) -> Offsets:
    """Return source partition -> offset below which each of these stores is verified."""
    offsets = [mark.verified_up_to for mark in marks]
    partitions = sorted({partition for each in offsets for partition in each})
    return Offsets({partition: min(each.of(partition) for each in offsets) for partition in partitions})


@dataclass(frozen=True)
class TableDigest:
    """A digest of rows that does not depend on their order: their number, and the sum of a hash of each."""

    rows: int = 0
    hashes: int = 0

    def __add__(self, other: "TableDigest") -> "TableDigest":
        """Return the digest of the rows of both."""
        return TableDigest(self.rows + other.rows, self.hashes + other.hashes)

    def __str__(self) -> str:
        """Return the digest as text, for log lines and the chain."""
        return f"{self.rows}:{self.hashes:x}"


@dataclass(frozen=True)
class VerifiedTag(Tag):
    """The tag of a commit of verified records.

    version, fold_revision: of the read model. fold: the fingerprint of its key, fold and merge. topic_id: Kafka's id of the source topic.
    stores: what is verified of each store. digest: of all rows of the table.
    chain: a hash of digest, offsets and `previous`, the chain of the records that these go on from; a full check starts a new one.
    run_id: the check that wrote it.
    """

    read_model: str
    version: int
    fold_revision: int
    fold: str
    topic_id: str
    stores: Mapping[str, VerifiedMark]
    digest: TableDigest
    run_id: str
    previous: str = ""
    chain: str = ""

    def chained(self) -> "VerifiedTag":
        """Return the tag with its chain."""
        return replace(self, chain=self._chain())

    @property
    def is_chained(self) -> bool:
        """Whether the chain is that of digest, offsets and the commit before: whether none of them was changed."""
        return self.chain == self._chain()

    def _chain(self) -> str:
        offsets = {name: sorted(mark.verified_up_to.items()) for name, mark in sorted(self.stores.items())}
        return hashlib.sha256(json.dumps([self.previous, str(self.digest), offsets]).encode()).hexdigest()
