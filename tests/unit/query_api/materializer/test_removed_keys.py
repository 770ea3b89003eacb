"""Records that are repeated after a key was removed are recognized, within a bounded memory."""

import pytest

from query_api.materializer import changelog_batch
from query_api.materializer.changelog_batch import RemovedKeys


def test_records_up_to_the_removal_are_outdated() -> None:
    removed = RemovedKeys()
    removed.add(b"a", 5)
    assert removed.is_outdated(b"a", 5)
    assert removed.is_outdated(b"a", 1)
    assert not removed.is_outdated(b"a", 6)
    assert not removed.is_outdated(b"b", 0)


def test_a_repeated_removal_forgets_nothing() -> None:
    removed = RemovedKeys()
    removed.add(b"a", 5)
    removed.add(b"a", 3)
    assert removed.is_outdated(b"a", 5)


def test_the_oldest_removals_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_batch, "MAX_KEYS", 2)
    removed = RemovedKeys()
    for key in (b"a", b"b", b"c"):
        removed.add(key, 1)
    assert [removed.is_outdated(key, 1) for key in (b"a", b"b", b"c")] == [False, True, True]


def test_a_removal_is_applied_each_time_and_what_it_removed_is_not() -> None:
    removed = RemovedKeys()
    assert not removed.is_repetition(b"a", 5, is_removal=True)
    assert removed.is_repetition(b"a", 4, is_removal=False)
    assert not removed.is_repetition(b"a", 5, is_removal=True)
    assert not removed.is_repetition(b"a", 6, is_removal=False)
