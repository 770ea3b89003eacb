"""Which of a batch's changes count: the same rule for every backend."""

from collections.abc import Iterable

from query_api.store.base import Change


def newest_changes(changes: Iterable[Change]) -> tuple[dict[bytes, Change], set[bytes]]:
    """Return the change that counts for each key, and the keys that the batch deletes on the way.

    A deletion starts a key from nothing: what follows it counts, whatever was stored before.
    """
    newest: dict[bytes, Change] = {}
    deleted: set[bytes] = set()
    for change in changes:
        earlier = newest.get(change.key)
        if change.value is None:
            deleted.add(change.key)
        elif earlier is not None and earlier.value is not None and change.event_count < earlier.event_count:
            continue
        newest[change.key] = change
    return newest, deleted
