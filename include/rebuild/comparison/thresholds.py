"""The limits within which a rebuild may be promoted without a person: fields of its request, and what a comparison exceeds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from include.rebuild.comparison.comparison import Comparison, FieldTotals
from include.rebuild.comparison.report_text import number, percent
from include.rebuild.errors import RequestError
from include.words import plural

# The fields of the form, in its order.
THRESHOLD_FIELDS = ("max_changed_percent", "max_total_change", "no_negative")
MAX_PERCENT = 100.0


@dataclass(frozen=True)
class Thresholds:
    """Limits; None or False: no limit.

    max_changed_percent: of the keys that change, are added or are gone, relative to all keys.
    max_total_change: of the changes of all keys in each numeric field, added up without their signs.
    no_negative: no numeric field of a key may be below zero.
    """

    max_changed_percent: float | None = None
    max_total_change: float | None = None
    no_negative: bool = False

    @property
    def are_set(self) -> bool:
        """Whether there is a limit."""
        return self != Thresholds()


def thresholds_of(conf: Mapping[str, Any]) -> Thresholds:
    """Check the thresholds of a request; raises RequestError, which names the field and its allowed values."""
    no_negative = conf.get("no_negative") or False
    if not isinstance(no_negative, bool):
        raise RequestError(
            f"no_negative is {no_negative!r}; allowed: true (no field may be below zero) or false."
        )
    return Thresholds(
        _limit(conf, "max_changed_percent", MAX_PERCENT),
        _limit(conf, "max_total_change", math.inf),
        no_negative,
    )


def _limit(conf: Mapping[str, Any], name: str, maximum: float) -> float | None:
    value = conf.get(name)
    if value is None or value == "":
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= value <= maximum:
        allowed = f"a number from 0 to {maximum:.0f}" if math.isfinite(maximum) else "a number of at least 0"
        raise RequestError(f"{name} is {value!r}; allowed: {allowed}, or empty for no limit.")
    return float(value)


def exceeded(thresholds: Thresholds, comparison: Comparison) -> tuple[str, ...]:
    """Return a sentence for each threshold that the comparison exceeds: which one, and by how much."""
    found = []
    limit = thresholds.max_changed_percent
    if limit is not None and comparison.changed_percent > limit:
        found.append(
            f"{comparison.counts} ({percent(comparison.changed_percent)}), and at most "
            f"{percent(limit)} may (max_changed_percent)."
        )
    for name, totals in comparison.fields.items():
        found += _exceeded_in_field(thresholds, name, totals)
    if thresholds.are_set and comparison.before is None:
        found.append("There is no live version to compare with, so that no threshold can be evaluated.")
    return tuple(found)


def _exceeded_in_field(thresholds: Thresholds, name: str, totals: FieldTotals) -> list[str]:
    found = []
    limit = thresholds.max_total_change
    if limit is not None and _is_above(totals.moved, limit):
        found.append(
            f"{name} changes by {number(totals.moved)} over all keys, without the signs, and at most {number(_text(limit))} is allowed "
            "(max_total_change)."
        )
    before, after = totals.below_zero
    if thresholds.no_negative and after:
        found.append(
            f"{name} is below zero in {plural(after, 'key')}, and none may be (no_negative); before: in {before:,}."
        )
    return found


def _text(limit: float) -> str:
    return f"{limit:.0f}" if limit.is_integer() else str(limit)


def _is_above(moved: str, limit: float) -> bool:
    """Return whether a change is above a limit; one that is too large to be added up is."""
    value = Decimal(moved)
    return not value.is_finite() or value > Decimal(str(limit))
