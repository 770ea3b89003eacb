"""The expectations of each key, and the names and rules of those of whole stores, whichever engine compares the records.

An expectation of each key is a rule over the rows of the comparison: a row for each key in one replica of a store. The rules use these columns:
place (the replica's name), key, stored and replayed (structs of a record's fields; null if there is no such record), stored_offset,
required_offset (of the key's newest event below the replica's cut; null if there is none), copy (1 for a key's first record, 2 and so on for
further ones in the same replica), stored_has_ended (whether an event in the stored record ends the item). A row that breaks a rule makes its key
a failing key in the report. A new one is an entry of `key_expectations`.
"""

from collections.abc import Callable, Mapping

from include.replay.rules import AtLeastColumn, AtMost, Equal, Expectation, NotNull, quoted

# Of each key.
COMPLETE = "complete up to the cut"
ONCE = "each key is stored once"
NO_ENDED_KEY = "no ended item is stored"
NO_EXTRA_KEY = "no key without events"
NO_MISSING_KEY = "no key is missing"
# Of whole stores.
FRESH = "fresh"
KEY_COUNT = "as many keys as the log"
WHOLE_PARTITIONS = "no partition is truncated"
RIGHT_STORE = "the store has this version and responds"
WHOLE_LOG = "the log is complete"
# A partition that lacks this share of its keys, and more than one key, counts as truncated.
TRUNCATED_SHARE = 0.1
FLOATING = frozenset({"FLOAT", "DOUBLE"})
SAME_COUNT = Expectation(KEY_COUNT, AtMost("difference", 0))
NOT_TRUNCATED = Expectation(WHOLE_PARTITIONS, AtMost("missing_share", TRUNCATED_SHARE, below=True))
# Columns of the comparison.
STORED, REPLAYED, STORED_HAS_ENDED = "stored", "replayed", "stored_has_ended"


def key_expectations(fields: Mapping[str, str], comparable: Callable[[str, str], str]) -> list[Expectation]:
    """Return the expectations of each key.

    Args:
        fields: of a state record -> its type in DuckDB.
        comparable: see CheckTables.
    """

    def key_if(condition: str) -> str:
        return f"CASE WHEN {condition} THEN key END"

    return [
        # The stored offset has reached the key's newest event below the cut.
        Expectation(COMPLETE, AtLeastColumn("stored_offset", "required_offset")),
        *(_replayed(number, field, comparable) for number, field in enumerate(fields.items())),
        # Each row is the first record of its key.
        Expectation(ONCE, AtMost("copy", 1)),
        # None of the events in a stored record ends the item.
        Expectation(NO_ENDED_KEY, NotNull("active_key"), {"active_key": key_if(f"NOT {STORED_HAS_ENDED}")}),
        # Each stored record has a replayed one. Not simply "a replayed record exists": a missing key has one too, for the report.
        Expectation(
            NO_EXTRA_KEY,
            NotNull("replayed_key"),
            {"replayed_key": key_if(f"{STORED} IS NULL OR {REPLAYED} IS NOT NULL")},
        ),
        # Every key with events below the cut has a stored record.
        Expectation(NO_MISSING_KEY, NotNull("stored_key"), {"stored_key": key_if(f"{STORED} IS NOT NULL")}),
    ]


def folds_to(field: str) -> str:
    """Return the name of a field's expectation."""
    return f"{field} equals the replayed value"


def _replayed(number: int, typed: tuple[str, str], comparable: Callable[[str, str], str]) -> Expectation:
    """Return the expectation that the stored and the replayed value of a field are equal. typed: the field, and its type.

    The columns have the number of the field. If either record is absent, no field is compared: other expectations report a missing or extra key.
    """
    field, kind = typed
    columns = {}
    for side in (STORED, REPLAYED):
        value = comparable(f"{side}.{quoted(field)}", kind)
        # -0.0 plus 0.0 is 0.0: which of two equal zeros a fold keeps depends on their order.
        value = f"{value} + 0.0" if kind in FLOATING else value
        columns[f"{side}_field_{number}"] = (
            f"CASE WHEN {STORED} IS NOT NULL AND {REPLAYED} IS NOT NULL THEN {value} END"
        )
    return Expectation(folds_to(field), Equal(*columns), columns)


def fresh_within(max_lag_s: float) -> Expectation:
    """Return the expectation for a maximum lag in seconds."""
    return Expectation(FRESH, AtMost("lag_s", max_lag_s))
