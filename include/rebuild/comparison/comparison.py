"""The comparison of the states of two versions of a read model, as data. Numbers of a state are text: exact, and with their scale."""

from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Literal

from pydantic import TypeAdapter

from include.declarations.read_model import ReadModel
from include.rebuild.comparison.fold_source import FoldText
from include.words import plural

# Sums of decimals of 38 digits, and their differences, without rounding. The difference of two infinities is NaN, and no error.
EXACT = Context(prec=80, traps=[])

Kind = Literal["changed", "added", "gone"]


@dataclass(frozen=True)
class VersionStates:
    """One side: the states of a version. number: 0 if it is no version yet.

    starts: by partition, the offset of the first event that it folds; empty: the first event of the log.
    events: folded into its states. keys: the number of its states.
    """

    number: int
    fold_revision: int
    source_topic: str
    starts: dict[str, int]
    events: int
    keys: int

    @classmethod
    def of(
        cls, number: int, fold_revision: int, reading: ReadModel, events: int, keys: int
    ) -> "VersionStates":
        """Return the states of a version. reading: the read model with the topic and the start of the version."""
        starts = {str(partition): offset for partition, offset in reading.starts.items()}
        return cls(number, fold_revision, reading.source_topic, starts, events, keys)


@dataclass(frozen=True)
class FieldChange:
    """A field of one key's state, as text, before and after; None: that version has no record of the key, or not this field."""

    before: str | None
    after: str | None


@dataclass(frozen=True)
class KeyDifference:
    """A key whose state changes. events: the number of its events."""

    key: str
    events: FieldChange
    fields: dict[str, FieldChange]

    @property
    def kind(self) -> Kind:
        """Whether the state of the key changes, or only one version has the key."""
        if self.events.before is None:
            return "added"
        return "gone" if self.events.after is None else "changed"


@dataclass(frozen=True)
class Bin:
    """The number of keys whose change is from `low` to below `high`; for negative changes, from above `low` to `high`."""

    low: str
    high: str
    keys: int


@dataclass(frozen=True)
class FieldTotals:
    """A numeric field over all keys; a key without a record counts as 0.

    before, after: its sums; None: that version does not have the field. moved: the sum of the changes of each key, without their signs.
    below_zero: the number of keys below zero, before and after. bins: how many keys change by how much, in ascending order of the change.
    """

    before: str | None
    after: str | None
    moved: str = "0"
    below_zero: tuple[int, int] = (0, 0)
    bins: tuple[Bin, ...] = ()

    @property
    def difference(self) -> Decimal | None:
        """The change of the sum; None if only one version has the field."""
        if self.before is None or self.after is None:
            return None
        return EXACT.subtract(Decimal(self.after), Decimal(self.before))

    @property
    def difference_percent(self) -> Decimal | None:
        """The change of the sum, relative to the sum before; None if that is not defined."""
        net, before = self.difference, Decimal(self.before or "0")
        if net is None or not before or not net.is_finite() or not before.is_finite():
            return None
        return net / abs(before) * 100


@dataclass(frozen=True)
class Comparison:
    """The states of a version and those of the version that it is to replace.

    before: None if there is no version to compare with, so that every key is an added one.
    changed: the number of keys of both versions that differ in a field that both have; the position of the records is not compared.
    added, gone: the numbers of keys that only the new version has, or only the old one.
    fields: the numeric fields of the state. new_fields, dropped_fields: all fields that only one of the versions has.
    largest: the changes that are the largest in the field `measure`. samples: some keys of each kind, chosen by a hash.
    folds: the fold of each version. notes: what limits the comparison, in sentences.
    staging_version: of the staging table that was compared; None if none was. engine: the one that compared, `duckdb` or `spark`.
    engine_reason: why Spark, where DuckDB might have compared; else empty. event_sources: as in CheckResult.
    """

    read_model: str
    before: VersionStates | None
    after: VersionStates
    changed: int
    added: int
    gone: int
    fields: dict[str, FieldTotals]
    measure: str
    largest: tuple[KeyDifference, ...]
    samples: tuple[KeyDifference, ...] = ()
    new_fields: tuple[str, ...] = ()
    dropped_fields: tuple[str, ...] = ()
    folds: tuple[FoldText, ...] = ()
    notes: tuple[str, ...] = ()
    run_id: str = ""
    reason: str = ""
    compared_at: str = ""
    duration_s: float = field(default=0.0, compare=False)
    staging_version: int | None = field(default=None, compare=False)
    engine: str = field(default="", compare=False)
    engine_reason: str = field(default="", compare=False)
    event_sources: str = field(default="", compare=False)

    @property
    def all_keys(self) -> int:
        """The number of keys that either version has."""
        return self.after.keys + self.gone

    @property
    def differing(self) -> int:
        """The number of keys that change, are added or are gone."""
        return self.changed + self.added + self.gone

    @property
    def changed_percent(self) -> float:
        """The share of `differing` in all keys."""
        return 100.0 * self.differing / self.all_keys if self.all_keys else 0.0

    @property
    def counts(self) -> str:
        """How many keys differ, of how many, in words."""
        verb = "differs" if self.differing == 1 else "differ"
        return f"{self.differing:,} of {plural(self.all_keys, 'key')} {verb}"

    @property
    def label(self) -> str:
        """The two versions, such as "v2 compared with v1, which is live"."""
        if self.before is None:
            return f"v{self.after.number}, compared with nothing"
        return f"v{self.after.number} compared with v{self.before.number}, which is live"

    def to_json(self) -> str:
        """Return the comparison as JSON."""
        return _ADAPTER.dump_json(self, indent=1).decode()

    @classmethod
    def from_json(cls, text: str) -> "Comparison":
        """Read what `to_json` has written; raises ValueError if it is something else."""
        return _ADAPTER.validate_json(text)


_ADAPTER = TypeAdapter(Comparison)
