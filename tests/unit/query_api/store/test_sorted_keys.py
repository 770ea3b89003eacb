"""Keys stay in order through additions and removals."""

import random

import pytest

from query_api.store.memory import sorted_keys
from query_api.store.memory.sorted_keys import SortedKeys


@pytest.mark.parametrize("max_chunk_keys", [1, 2, 7, 2_000])
def test_keys_stay_in_order_while_keys_are_added_and_removed(
    monkeypatch: pytest.MonkeyPatch, max_chunk_keys: int
) -> None:
    monkeypatch.setattr(sorted_keys, "MAX_CHUNK_KEYS", max_chunk_keys)
    chance = random.Random(max_chunk_keys)
    keys, expected = SortedKeys(), set[bytes]()
    for step in range(4_000):
        key = b"%d" % chance.randrange(300)
        # Mostly additions at first, mostly removals at the end.
        if key not in expected and chance.random() > step / 4_000:
            keys.add(key)
            expected.add(key)
        elif key in expected and chance.random() < step / 4_000:
            keys.remove(key)
            expected.remove(key)
        if step % 50 == 0:
            first = b"%d" % chance.randrange(300)
            assert list(keys.since(b"")) == sorted(expected)
            assert list(keys.since(first)) == sorted(k for k in expected if k >= first)
    for key in sorted(expected):
        keys.remove(key)
    assert list(keys.since(b"")) == []
