"""The verified records of a version: kept by checks that pass, so that an incremental check replays only the events since.

A row is the replay of a key's events up to a position at which a store had the key's record. It depends on the log alone, so all stores
share the rows. For each store in the tag, each key has a row that contains the key's events below the store's `verified_up_to`, and no
event that a correct record of the store may lack. The rows are replaced as a whole.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from include.position import SOURCE_OFFSET, SOURCE_PARTITION, Offsets
from include.quality.check import FullCheckNeededError, StoreName
from include.quality.verified_tag import TableDigest, VerifiedMark, VerifiedTag, verified_by_all
from include.replay.check.comparison import below
from include.replay.check.tables import CheckTables
from include.replay.check.target import CheckTarget

LOG = logging.getLogger("foldlake.quality")


@dataclass(frozen=True)
class VerifiedRecords:
    """The records from which an incremental check continues. marks: how far the stores of this check are verified."""

    tag: VerifiedTag
    marks: Mapping[str, VerifiedMark]

    @property
    def since(self) -> Offsets:
        """Source partition -> offset below which all stores of this check are verified."""
        return verified_by_all(self.marks.values())


class ChangedError(Exception):
    """The records are not readable; the message says why."""


class VerifiedStore(ABC):
    """Where an engine keeps the verified records of a version.

    fields: those of a record. fingerprint: of the engine and the rules that make the records; None if they cannot be merged.
    """

    def __init__(
        self, tables: CheckTables, target: CheckTarget, fields: Sequence[str], fingerprint: str | None
    ) -> None:
        self.fingerprint = fingerprint
        self._tables = tables
        self._target = target
        self._columns = ("key", *fields)

    def read(self, stores: Sequence[StoreName]) -> VerifiedRecords:
        """Create the table `verified` of the records, which must be of these rules and stores.

        Raises FullCheckNeededError when there are none, or when they are not what the check has written that verified them.
        """
        if self.fingerprint is None:
            raise FullCheckNeededError(f"fold revision {self._target.version.fold_revision} has no merge")
        tag = self._tag()
        if tag is None:
            raise FullCheckNeededError("no full check has verified the records yet")
        if tag.fold != self.fingerprint:
            raise FullCheckNeededError(
                "key, fold or merge of the read model, or the engine, have changed since the last full check"
            )
        if tag.topic_id != self._target.topic_id:
            raise FullCheckNeededError("the source topic was created anew since the last full check")
        absent = [store for store in stores if str(store) not in tag.stores]
        if absent:
            raise FullCheckNeededError(f"no full check has verified the records of {', '.join(absent)} yet")
        if change := self._change(tag):
            LOG.warning(
                "%s was changed by another program (%s): its records are not used", self._location, change
            )
            raise FullCheckNeededError("another program has changed the verified records")
        return VerifiedRecords(tag, {str(store): tag.stores[str(store)] for store in stores})

    def write(
        self, rows: str, marks: Mapping[str, VerifiedMark], run_id: str, basis: VerifiedTag | None = None
    ) -> None:
        """Replace the records by those of a query, unless another check has replaced the ones that they go on from.

        marks: of the stores that this check has verified. basis: the tag of the records that the rows go on from; None: of none.
        """
        current = self._tag()
        if basis is not None and (current is None or current.chain != basis.chain):
            LOG.warning("another check has written verified records at the same time: its records are kept")
            return
        before = basis.stores if basis else {}
        if all(
            name in before and before[name].verified_up_to == mark.verified_up_to
            for name, mark in marks.items()
        ):
            return
        stores = {**before, **marks}
        offsets = verified_by_all(stores.values())
        is_below = below(offsets, SOURCE_PARTITION.name, SOURCE_OFFSET.name)
        # Every store has the newest row below all of their `verified_up_to`, so that no check needs an older one.
        self._tables.create(
            "kept",
            f"""SELECT {self._names} FROM ({rows}) AS found
            QUALIFY NOT ({is_below}) OR row_number() OVER (PARTITION BY key, {is_below} ORDER BY {SOURCE_OFFSET.name} DESC) = 1""",
        )
        target = self._target
        tag = VerifiedTag(
            target.model.name,
            target.version.number,
            target.version.fold_revision,
            self.fingerprint or "",
            self._target.topic_id,
            stores,
            self._digest("kept"),
            run_id,
            basis.chain if basis else "",
        )
        self._save(tag.chained())

    def _change(self, tag: VerifiedTag) -> str:
        """Load the records; return what has changed since they were written, empty if nothing has."""
        try:
            self._load()
            found = self._digest("verified")
        except ChangedError as error:
            return str(error)
        return "" if found == tag.digest and tag.is_chained else f"its digest is {found}, not {tag.digest}"

    @property
    def _names(self) -> str:
        return ", ".join(f'"{name}"' for name in self._columns)

    @property
    @abstractmethod
    def _location(self) -> str:
        """Where the records are."""

    @abstractmethod
    def _tag(self) -> VerifiedTag | None:
        """Return the tag of the current records; None if there are none."""

    @abstractmethod
    def _load(self) -> None:
        """Create the table `verified`; raises ChangedError if the records are not readable."""

    @abstractmethod
    def _digest(self, table: str) -> TableDigest:
        """Return the digest of the rows of a table."""

    @abstractmethod
    def _save(self, tag: VerifiedTag) -> None:
        """Replace the records, and their tag, by the table `kept`."""
