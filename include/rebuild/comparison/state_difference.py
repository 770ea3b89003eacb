"""Compares the states of two versions by key, in SQL that Spark and DuckDB both understand: how many differ, the totals, the largest changes.

Two or three passes over the joined states: counts and totals, then the histograms, whose bins depend on them, and single keys.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

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
BEFORE, AFTER = SIDES = ("before", "after")
# A sum that Spark's decimals cannot hold.
TOO_LARGE = "NaN"
# Python's texts of doubles that are no numbers -> those that nodes answer with.
NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
INTEGRAL = frozenset({"TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"})
FLOATING = frozenset({"FLOAT", "DOUBLE"})
# A sum of whole numbers may be beyond a long.
WHOLE = "DECIMAL(20,0)"
Row = Mapping[str, Any]


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


@dataclass(frozen=True)
class JoinedStates:
    """The states of two versions, joined by key.

    before, after: each field of the state of a version -> its type in SQL of the engine.
    rows: returns the result of a query over `{states}`, which has a row for each key: `key`, `events_before` and `events_after` (null if
    that version has no record of the key), `before_0`, `before_1`, ... and `after_0`, ..., the fields of each version in their order.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    rows: Callable[[str], Sequence[Row]]

    def difference(self) -> StateDifference:
        """Compare the states."""
        totals = self._totals()
        moved = {name: totals[f"moved_{i}"] for i, name in enumerate(self._numeric) if name in self._shared}
        measure = next((name for name, sum_ in moved.items() if sum_), next(iter(moved), EVENTS))
        return StateDifference(
            events=(totals["all_events_before"], totals["all_events_after"]),
            keys=(totals["keys_before"], totals["keys_after"]),
            changed=totals["changed"],
            added=totals["added"],
            gone=totals["gone"],
            fields=self._fields(totals, self._bins(totals)),
            measure=measure,
            largest=self._chosen(self._differs, f"abs({self._change(measure)}) DESC", LARGEST),
            samples=self._samples(totals),
        )

    @property
    def _types(self) -> dict[str, str]:
        return {**self.after, **self.before}

    @property
    def _shared(self) -> list[str]:
        return [name for name in self.after if name in self.before]

    @property
    def _numeric(self) -> list[str]:
        kinds = INTEGRAL | FLOATING | {"DECIMAL"}
        return [name for name, kind in self._types.items() if kind.upper().partition("(")[0] in kinds]

    def _is_floating(self, name: str) -> bool:
        return self._types.get(name, "").upper() in FLOATING

    def _column(self, side: str, name: str) -> str | None:
        """Return the column of a field; None if that version lacks it."""
        if name == EVENTS:
            return f"events_{side}"
        fields = list(self.before if side == BEFORE else self.after)
        return f"{side}_{fields.index(name)}" if name in fields else None

    @property
    def _has_changed(self) -> str:
        """The condition that both versions have a key and differ in a field that both have."""
        different = (
            f"{self._column(BEFORE, name)} IS DISTINCT FROM {self._column(AFTER, name)}"
            for name in self._shared
        )
        both = "events_before IS NOT NULL AND events_after IS NOT NULL"
        return f"({both} AND ({' OR '.join(different) or 'false'}))"

    @property
    def _differs(self) -> str:
        return f"(events_before IS NULL OR events_after IS NULL OR {self._has_changed})"

    def _value(self, side: str, name: str) -> str:
        """Return the number of a field; 0 where there is none."""
        kind = self._types.get(name, "BIGINT")
        column = self._column(side, name)
        if kind.upper() in INTEGRAL and name != EVENTS:
            kind, column = WHOLE, column and f"CAST({column} AS {WHOLE})"
        zero = f"CAST(0 AS {kind})"
        return zero if column is None else f"coalesce({column}, {zero})"

    def _change(self, name: str) -> str:
        """Return by how much a field changes; NaN if one side is no number. Two that are no numbers and equal do not change."""
        before, after = self._value(BEFORE, name), self._value(AFTER, name)
        change = f"({after} - {before})"
        if not self._is_floating(name):
            return change
        return f"CASE WHEN {before} IS DISTINCT FROM {after} THEN {change} ELSE CAST(0 AS DOUBLE) END"

    def _is_finite(self, name: str) -> str:
        # NaN is above every number.
        return (
            f"abs({self._change(name)}) < CAST('Infinity' AS DOUBLE)" if self._is_floating(name) else "true"
        )

    def _totals(self) -> Row:
        columns = [
            *(f"count(events_{side}) AS keys_{side}" for side in SIDES),
            *(f"CAST(coalesce(sum(events_{side}), 0) AS BIGINT) AS all_events_{side}" for side in SIDES),
            "count(*) FILTER (WHERE events_before IS NULL) AS added",
            "count(*) FILTER (WHERE events_after IS NULL) AS gone",
            f"count(*) FILTER (WHERE {self._has_changed}) AS changed",
        ]
        for i, name in enumerate(self._numeric):
            change = self._change(name)
            # A histogram has finite bins: changes from and to what is no number are in the totals only.
            size = f"CASE WHEN {change} <> 0 AND {self._is_finite(name)} THEN abs({change}) END"
            columns += [
                *(f"try_sum({self._value(side, name)}) AS {side}_sum_{i}" for side in SIDES),
                *(
                    f"count(*) FILTER (WHERE {self._value(side, name)} < 0) AS negative_{side}_{i}"
                    for side in SIDES
                ),
                f"try_sum(abs({change})) AS moved_{i}",
                f"min({size}) AS smallest_{i}",
                f"max({size}) AS largest_{i}",
            ]
        (row,) = self.rows(f"SELECT {', '.join(columns)} FROM {{states}}")
        return row

    def _fields(self, totals: Row, bins: Mapping[str, tuple[Bin, ...]]) -> dict[str, FieldTotals]:
        is_empty = not totals["keys_before"] and not totals["keys_after"]
        found = {}
        for i, name in enumerate(self._numeric):
            sums = (totals[column] for column in (f"before_sum_{i}", f"after_sum_{i}", f"moved_{i}"))
            before, after, moved = (
                "0" if is_empty else TOO_LARGE if one is None else value_text(one) for one in sums
            )
            found[name] = FieldTotals(
                before if name in self.before else None,
                after if name in self.after else None,
                moved if name in self._shared else "0",
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
        numbers = " UNION ALL ".join(
            f"SELECT {self._numeric.index(name)} AS field, {self._bin_number(name, found)} AS bin FROM {{states}}"
            for name, found in of_field.items()
        )
        rows = self.rows(
            f"SELECT field, bin, count(*) AS number FROM ({numbers}) WHERE bin <> 0 GROUP BY field, bin"
        )
        counts = {(self._numeric[row["field"]], row["bin"]): row["number"] for row in rows}
        return {name: _field_bins(name, found, counts) for name, found in of_field.items()}

    def _bin_number(self, name: str, found: Sequence[Decimal]) -> str:
        """Return the number of the bin of a change, from 1; negative for a negative change; 0 for none."""
        change = self._change(name)
        steps = [
            f"CASE WHEN abs({change}) >= CAST('{plain(edge)}' AS {'DOUBLE' if self._is_floating(name) else _decimal_type(edge)}) THEN 1 ELSE 0 END"
            for edge in found[1:-1]
        ]
        reached, is_finite = " + ".join(["1", *steps]), self._is_finite(name)
        return f"CASE WHEN {is_finite} AND {change} > 0 THEN {reached} WHEN {is_finite} AND {change} < 0 THEN -({reached}) ELSE 0 END"

    def _samples(self, totals: Row) -> tuple[KeyDifference, ...]:
        """Return some keys of each kind; the same ones when the comparison is repeated, with either engine."""
        kinds = {
            "changed": self._has_changed,
            "added": "events_before IS NULL",
            "gone": "events_after IS NULL",
        }
        return tuple(
            one
            for kind, condition in kinds.items()
            if totals[kind]
            for one in self._chosen(condition, "md5(key)", SAMPLES)
        )

    def _chosen(self, condition: str, order: str, limit: int) -> tuple[KeyDifference, ...]:
        rows = self.rows(f"SELECT * FROM {{states}} WHERE {condition} ORDER BY {order}, key LIMIT {limit}")
        return tuple(
            KeyDifference(
                row["key"],
                self._field_change(row, EVENTS),
                {name: self._field_change(row, name) for name in self._types},
            )
            for row in rows
        )

    def _field_change(self, row: Row, name: str) -> FieldChange:
        return FieldChange(*(self._text(row, side, name) for side in SIDES))

    def _text(self, row: Row, side: str, name: str) -> str | None:
        column = self._column(side, name)
        return None if column is None or row[f"events_{side}"] is None else value_text(row[column])


def _decimal_type(edge: Decimal) -> str:
    """Return the smallest type: Spark compares with fewer decimals than one side has if both types together have too many digits."""
    scale = max(0, -int(edge.normalize().as_tuple().exponent))
    return f"DECIMAL({max(1, edge.adjusted() + 1 + scale, scale)},{scale})"


def _field_bins(
    name: str, found: Sequence[Decimal], counts: Mapping[tuple[str, int], int]
) -> tuple[Bin, ...]:
    """Return the bins of a field between the first and the last that is not empty, those below zero first."""
    last = len(found) - 1
    below = [
        Bin(plain(-found[n]), plain(-found[n - 1]), counts.get((name, -n), 0)) for n in range(last, 0, -1)
    ]
    above = [Bin(plain(found[n - 1]), plain(found[n]), counts.get((name, n), 0)) for n in range(1, last + 1)]
    bins = below + above
    filled = [i for i, one in enumerate(bins) if one.keys]
    return tuple(bins[filled[0] : filled[-1] + 1]) if filled else ()


def value_text(value: object) -> str:
    """Return the value of a field as text: times in UTC, without a zone."""
    match value:
        case None:
            return "null"
        case float():
            return NO_NUMBERS.get(str(value), str(value))
        case datetime() if value.tzinfo is not None:
            return str(value.astimezone(UTC).replace(tzinfo=None))
        case Mapping():
            return f"{{{', '.join(f'{name}: {value_text(inner)}' for name, inner in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def _decimal(value: Any) -> Decimal | None:  # noqa: ANN401 - any number of an engine
    """Return a number that is above 0; None if there is none, or it is not finite."""
    found = None if value is None else Decimal(str(value))
    return found if found is not None and found.is_finite() and found > 0 else None
