"""Which records are outdated: those with a lower event count, and those from before a removal."""

from query_api.changes.key_history import KeyHistory, KeyState


def with_state(event_count: int, *, is_removed: bool = False) -> KeyHistory:
    history = KeyHistory()
    history.set(b"k", KeyState(event_count, is_removed, None))
    return history


def test_a_record_with_a_lower_count_is_outdated() -> None:
    history = with_state(5)

    assert history.is_outdated_record(b"k", 4)
    assert not history.is_outdated_record(b"k", 5)
    assert not history.is_outdated_record(b"other", 1)


def test_after_a_removal_only_a_record_of_more_events_is_new() -> None:
    history = with_state(5, is_removed=True)

    assert history.is_outdated_record(b"k", 5)
    assert not history.is_outdated_record(b"k", 6)
    assert history.is_repeated_removal(b"k")
    assert not with_state(5).is_repeated_removal(b"k")


def test_the_key_that_did_not_change_for_the_longest_time_is_forgotten() -> None:
    history = KeyHistory(max_keys=2)
    for key in (b"a", b"b", b"a", b"c"):
        history.set(key, KeyState(1, is_removed=False, point=None))

    assert history.state(b"b") is None
    assert history.state(b"a") is not None
    assert history.state(b"c") is not None
