"""Compares two frames of states by key: how many differ, the totals of each numeric field, and the largest changes.

Two or three passes over the joined states: counts and totals, then the histograms, whose bins depend on them, and single keys.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit
from pyspark.sql.types import DoubleType, FloatType, IntegralType, NumericType

from include.rebuild.comparison.comparison import (
    Bin,
    Comparison,
    FieldChange,
    FieldTotals,
    KeyDifference,
    VersionStates,
)
from include.rebuild.comparison.histograms import edges, plain

LARGEST = 10
SAMPLES = 5
EVENTS = "event_count"
BEFORE, AFTER = "before", "after"
# A sum that Spark's decimals cannot hold.
TOO_LARGE = "NaN"
# Python's texts of doubles that are no numbers -> those that nodes answer with.
NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(frozen=True)
class StateDifference:
    """What differs between two sets of states. events, keys: before, after; the other fields are those of `Comparison`."""

    events: tuple[int, int]
    keys: tuple[int, int]
    changed: int
    added: int
    gone: int
    fields: dict[str, FieldTotals]
    measure: str
    largest: tuple[KeyDifference, ...]
    samples: tuple[KeyDifference, ...]

    def comparison(self, read_model: str, before: VersionStates | None, after: VersionStates) -> Comparison:
        """Return the comparison of the two versions that the states belong to, without what does not follow from the states."""
        return Comparison(
            read_model=read_model,
            before=before,
            after=after,
            changed=self.changed,
            added=self.added,
            gone=self.gone,
            fields=self.fields,
            measure=self.measure,
            largest=self.largest,
            samples=self.samples,
        )


def compare_states(
    before: DataFrame, after: DataFrame, names_before: Sequence[str], names_after: Sequence[str]
) -> StateDifference:
    """Compare the states of two versions: frames with `key`, `event_count`, and the fields of the state that each version has."""
    both = _joined(before, after, names_before, names_after).persist(StorageLevel.MEMORY_AND_DISK_DESER)
    try:
        return _Joined(both, names_before, names_after).difference()
    finally:
        both.unpersist()


def _joined(
    before: DataFrame, after: DataFrame, names_before: Sequence[str], names_after: Sequence[str]
) -> DataFrame:
    """Return key, before, after: the states of both sides as structs; null where a key has none."""
    old = before.select("key", F.struct(*names_before, EVENTS).alias(BEFORE))
    new = after.select("key", F.struct(*names_after, EVENTS).alias(AFTER))
    return old.join(new, "key", "full_outer")


class _Joined:
    def __init__(self, both: DataFrame, names_before: Sequence[str], names_after: Sequence[str]) -> None:
        self._both = both
        self._names = list(dict.fromkeys([*names_after, *names_before]))
        self._shared = [name for name in names_after if name in names_before]
        self._sides = {BEFORE: names_before, AFTER: names_after}
        types = {
            field.name: field.dataType
            for side in (BEFORE, AFTER)
            for field in both.select(f"{side}.*").schema.fields
        }
        self._integral = {name for name, kind in types.items() if isinstance(kind, IntegralType)}
        self._floats = {name for name, kind in types.items() if isinstance(kind, FloatType | DoubleType)}
        self._numeric = [name for name in self._names if isinstance(types[name], NumericType)]

    def difference(self) -> StateDifference:
        totals = self._totals()
        compared = [name for name in self._numeric if name in self._shared]
        # By number: a name may contain characters that a column's alias may not.
        moved = {name: totals[f"moved_{self._numeric.index(name)}"] for name in compared}
        measure = next((name for name in compared if moved[name]), compared[0] if compared else EVENTS)
        return StateDifference(
            events=(totals.events_before or 0, totals.events_after or 0),
            keys=(totals.keys_before, totals.keys_after),
            changed=totals.changed,
            added=totals.added,
            gone=totals.gone,
            fields=self._fields(totals, self._bins(totals)),
            measure=measure,
            largest=self._largest(measure),
            samples=self._samples(totals),
        )

    @property
    def _has_changed(self) -> Column:
        if not self._shared:
            return lit(False)  # noqa: FBT003 - a column
        old, new = (F.struct(*(col(side)[name] for name in self._shared)) for side in (BEFORE, AFTER))
        return col(BEFORE).isNotNull() & col(AFTER).isNotNull() & ~old.eqNullSafe(new)

    @property
    def _differs(self) -> Column:
        return col(BEFORE).isNull() | col(AFTER).isNull() | self._has_changed

    def _value(self, side: str, name: str) -> Column:
        """Return the number of a field; 0 where there is none."""
        if name != EVENTS and name not in self._sides[side]:
            return lit(0)
        value = col(side)[name]
        # A sum of whole numbers may be beyond a long.
        value = value.cast("decimal(20,0)") if name in self._integral else value
        return F.coalesce(value, lit(0))

    def _change(self, name: str) -> Column:
        """Return by how much a field changes; NaN if one side is no number. Two that are no numbers and equal do not change."""
        before, after = self._value(BEFORE, name), self._value(AFTER, name)
        change = after - before
        return (
            F.when(before.eqNullSafe(after), lit(0.0)).otherwise(change) if name in self._floats else change
        )

    def _totals(self) -> Row:
        columns = []
        for i, name in enumerate(self._numeric):
            old, new, change = self._value(BEFORE, name), self._value(AFTER, name), self._change(name)
            # A histogram has finite bins: changes from and to what is no number are in the totals only.
            size = F.when((change != 0) & self._is_finite(name, change), F.abs(change))
            columns += [
                F.try_sum(old).alias(f"before_{i}"),
                F.try_sum(new).alias(f"after_{i}"),
                F.try_sum(F.abs(change)).alias(f"moved_{i}"),
                F.count_if(old < 0).alias(f"negative_before_{i}"),
                F.count_if(new < 0).alias(f"negative_after_{i}"),
                F.min(size).alias(f"smallest_{i}"),
                F.max(size).alias(f"largest_{i}"),
            ]
        row = self._both.agg(
            F.sum(col(BEFORE)[EVENTS]).alias("events_before"),
            F.sum(col(AFTER)[EVENTS]).alias("events_after"),
            F.count(BEFORE).alias("keys_before"),
            F.count(AFTER).alias("keys_after"),
            F.count_if(col(BEFORE).isNull()).alias("added"),
            F.count_if(col(AFTER).isNull()).alias("gone"),
            F.count_if(self._has_changed).alias("changed"),
            *columns,
        ).first()
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        return row

    def _fields(self, totals: Row, bins: dict[str, tuple[Bin, ...]]) -> dict[str, FieldTotals]:
        is_empty = not totals.keys_before and not totals.keys_after
        found = {}
        for i, name in enumerate(self._numeric):
            sums: dict[str, str | None] = {
                what: "0" if is_empty else _sum(totals[f"{what}_{i}"]) for what in (BEFORE, AFTER, "moved")
            }
            if name not in self._shared:
                side = BEFORE if name in self._sides[BEFORE] else AFTER
                sums = {BEFORE: None, AFTER: None, "moved": "0"} | {side: sums[side]}
            found[name] = FieldTotals(
                sums[BEFORE],
                sums[AFTER],
                sums["moved"] or "0",
                (totals[f"negative_before_{i}"], totals[f"negative_after_{i}"]),
                bins.get(name, ()),
            )
        return found

    def _bins(self, totals: Row) -> dict[str, tuple[Bin, ...]]:
        """Return the histogram of each field that changes."""
        of_field = {}
        for i, name in enumerate(self._numeric):
            smallest, largest = (_decimal(totals[f"{what}_{i}"]) for what in ("smallest", "largest"))
            if name in self._shared and smallest is not None and largest is not None:
                of_field[name] = edges(smallest, largest)
        if not of_field:
            return {}
        numbers = [
            F.struct(lit(name).alias("field"), self._bin_number(name, found).alias("bin"))
            for name, found in of_field.items()
        ]
        rows = (
            self._both.where(self._differs)
            .select(F.inline(F.array(*numbers)))
            .where(col("bin") != 0)
            .groupBy("field", "bin")
            .count()
            .collect()
        )
        counts = {(row.field, row.bin): row["count"] for row in rows}
        return {name: _field_bins(name, found, counts) for name, found in of_field.items()}

    def _bin_number(self, name: str, found: Sequence[Decimal]) -> Column:
        """Return the number of the bin of a change, from 1; negative for a negative change; 0 for none."""
        change = self._change(name)
        reached: Column = lit(1)
        for edge in found[1:-1]:
            # Spark's decimals have no negative scale.
            value = float(edge) if name in self._floats else Decimal(plain(edge))
            reached = reached + F.when(F.abs(change) >= lit(value), 1).otherwise(0)
        is_finite = self._is_finite(name, change)
        return F.when(is_finite & (change > 0), reached).when(is_finite & (change < 0), -reached).otherwise(0)

    def _is_finite(self, name: str, change: Column) -> Column:
        # Spark's NaN is above every number.
        return F.abs(change) < lit(math.inf) if name in self._floats else lit(True)  # noqa: FBT003 - a column

    def _largest(self, measure: str) -> tuple[KeyDifference, ...]:
        size = F.abs(self._change(measure))
        rows = self._both.where(self._differs).orderBy(size.desc(), "key").limit(LARGEST).collect()
        return tuple(map(self._key_change, rows))

    def _samples(self, totals: Row) -> tuple[KeyDifference, ...]:
        """Return some keys of each kind; the same ones when the comparison is repeated."""
        kinds = {
            "changed": self._has_changed,
            "added": col(BEFORE).isNull(),
            "gone": col(AFTER).isNull(),
        }
        rows: list[Row] = []
        for kind, condition in kinds.items():
            if totals[kind]:
                rows += self._both.where(condition).orderBy(F.xxhash64("key"), "key").limit(SAMPLES).collect()
        return tuple(map(self._key_change, rows))

    def _key_change(self, row: Row) -> KeyDifference:
        return KeyDifference(
            row.key,
            _field_change(row, EVENTS),
            {name: _field_change(row, name) for name in self._names},
        )


def _field_bins(name: str, found: Sequence[Decimal], counts: dict[tuple[str, int], int]) -> tuple[Bin, ...]:
    """Return the bins of a field between the first and the last that is not empty, those below zero first."""
    last = len(found) - 1
    below = [
        Bin(plain(-found[n]), plain(-found[n - 1]), counts.get((name, -n), 0)) for n in range(last, 0, -1)
    ]
    above = [Bin(plain(found[n - 1]), plain(found[n]), counts.get((name, n), 0)) for n in range(1, last + 1)]
    bins = below + above
    filled = [i for i, one in enumerate(bins) if one.keys]
    return tuple(bins[filled[0] : filled[-1] + 1]) if filled else ()


def _field_change(row: Row, name: str) -> FieldChange:
    return FieldChange(*(_field_text(row[side], name) for side in (BEFORE, AFTER)))


def _field_text(side: Row | None, name: str) -> str | None:
    return None if side is None or name not in side else _text(side[name])


def _text(value: object) -> str:
    text = "null" if value is None else str(value)
    return NO_NUMBERS.get(text, text) if isinstance(value, float) else text


def _sum(value: object) -> str:
    return TOO_LARGE if value is None else _text(value)


def _decimal(value: Any) -> Decimal | None:  # noqa: ANN401 - any of Spark's numbers
    """Return a number that is above 0; None if there is none, or it is not finite."""
    found = None if value is None else Decimal(str(value))
    return found if found is not None and found.is_finite() and found > 0 else None
