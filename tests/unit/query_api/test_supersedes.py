"""The newest record of a key is the same for everyone who reads a changelog in Python: the rule itself, nodes, and streams of changes."""

import pytest

from include.position import supersedes
from query_api.changes.key_change import KeyHistory, KeyState
from query_api.materializer.followed_partitions import RemovedKeys
from query_api.store.base import Change, newest_changes
from tests.support.changelogs.cases import CASES, ChangelogCase, Entry

KEY = b"k"
cases = pytest.mark.parametrize("case", CASES, ids=str)


@cases
def test_rule_finds_the_newest_record(case: ChangelogCase) -> None:
    known: Entry | None = None
    newest = None
    for index, entry in enumerate(case.log):
        if entry.is_removal:
            known, newest = entry, None
        elif known is None or supersedes(
            entry.event_count, known.event_count, is_known_removed=known.is_removal
        ):
            known, newest = entry, index

    assert newest == case.newest


@cases
def test_batch_of_a_node_has_the_newest_record(case: ChangelogCase) -> None:
    removed = RemovedKeys()
    changes = [
        Change(KEY, event_count, index, None if is_removal else b"value")
        for index, (event_count, is_removal) in enumerate(case.log)
        if not removed.is_repetition(KEY, event_count, is_removal=is_removal)
    ]

    newest, _ = newest_changes(changes)

    assert (newest[KEY].offset if newest[KEY].value is not None else None) == case.newest


@cases
def test_stream_of_changes_ends_with_the_newest_record(case: ChangelogCase) -> None:
    history, newest = KeyHistory(), None
    for index, (event_count, is_removal) in enumerate(case.log):
        if is_removal or not history.is_outdated_record(KEY, event_count):
            history.set(KEY, KeyState(event_count, is_removal, None))
            newest = None if is_removal else index

    assert newest == case.newest
