"""Selects the effective changes of a batch, with the same rule for every backend."""

from collections.abc import Iterable

from include.position import supersedes
from query_api.store.base import Change


def newest_changes(changes: Iterable[Change]) -> tuple[dict[bytes, Change], set[bytes]]:
    """Return the effective change of each key, and the keys that the batch deletes at any point.

    After a deletion, later changes of the key apply regardless of the record stored before.
    """
    newest: dict[bytes, Change] = {}
    deleted: set[bytes] = set()
    for change in changes:
        earlier = newest.get(change.key)
        if change.value is None:
            deleted.add(change.key)
        elif (
            earlier is not None
            and earlier.value is not None
            and not supersedes(change.event_count, earlier.event_count)
        ):
            continue
        newest[change.key] = change
    return newest, deleted
