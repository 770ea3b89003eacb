"""Rows of a comparison, one for each way in which a key can fail: both engines must mark the same ones."""

from include.replay.key_expectations import (
    COMPLETE,
    NO_ENDED_KEY,
    NO_EXTRA_KEY,
    NO_MISSING_KEY,
    ONCE,
    folds_to,
)

# Field names as topics have them: capital letters, quotes and dots.
AMOUNT, COUNT = 'Amount"in `EUR`.net', "event_count"
FIELDS = (AMOUNT, COUNT)
TYPES = dict.fromkeys(FIELDS, "VARCHAR")
COLUMNS = (
    "place",
    "key",
    "stored",
    "replayed",
    "stored_offset",
    "required_offset",
    "copy",
    "stored_has_ended",
)
ONE = ("1.00", "1")
# key -> the rest of its row, and the expectations that it fails.
ROWS: dict[str, tuple[tuple[object, ...], set[str]]] = {
    "right": ((ONE, ONE, 5, 5, 1, False), set()),
    "beyond the cut": ((ONE, ONE, 5, None, 1, False), set()),
    "amount off": ((("2.00", "1"), ONE, 5, 5, 1, False), {folds_to(AMOUNT)}),
    "folded twice": ((("2.00", "2"), ONE, 5, 5, 1, False), {folds_to(AMOUNT), folds_to(COUNT)}),
    "behind": ((ONE, ONE, 4, 5, 1, False), {COMPLETE}),
    "missing": ((None, ONE, None, 5, 1, False), {NO_MISSING_KEY}),
    "extra": ((ONE, None, 5, None, 1, False), {NO_EXTRA_KEY}),
    "second": ((ONE, ONE, 5, 5, 2, False), {ONCE}),
    "ended": ((ONE, ONE, 5, 5, 1, True), {NO_ENDED_KEY}),
}


def comparison_rows() -> list[tuple[object, ...]]:
    """Return the rows, each with the values of COLUMNS; records are tuples of the values of FIELDS."""
    return [("lake", key, *row) for key, (row, _) in ROWS.items()]
