"""A node judges a store that others write by the ends of the changelog that it has read itself."""

from include.boot_clock import Moment
from query_api.cluster.node_state import PartitionState
from query_api.materializer.followed_partitions import SharedPartitions
from query_api.store.base import ChangelogPosition


def at(next_offset: int) -> ChangelogPosition:
    return ChangelogPosition(next_offset, 0.0)


def later() -> Moment:
    """Return a moment after everything so far."""
    now = Moment.now()
    return Moment(now.boot_s + 1, now.unix_s + 1)


def state(shared: SharedPartitions) -> PartitionState:
    states = shared.states()
    assert states is not None
    return states[0]


def test_nothing_is_known_before_the_store_was_read() -> None:
    shared = SharedPartitions({})
    shared.observe_ends({0: 5}, Moment.now())
    assert shared.states() is None

    assert not shared.refresh({})
    assert shared.states() == {}


def test_partition_is_ready_once_it_has_reached_an_end_that_was_read_afterwards() -> None:
    shared = SharedPartitions({})
    before = Moment.now()
    assert shared.refresh({0: at(5)})
    shared.observe_ends({0: 5}, before)
    assert not state(shared).is_ready, "that end may be old"

    shared.observe_ends({0: 7}, read := later())
    assert not state(shared).is_ready
    assert shared.refresh({0: at(7)})
    assert not shared.refresh({0: at(7)})

    assert state(shared).is_ready
    assert (state(shared).end_offset, state(shared).confirmed) == (7, read)


def test_partition_that_has_gone_back_or_is_gone_is_not_ready() -> None:
    shared = SharedPartitions({})
    shared.refresh({0: at(7)})
    shared.observe_ends({0: 7}, later())
    assert state(shared).is_ready

    shared.refresh({0: at(6)})
    assert not state(shared).is_ready

    shared.observe_ends({0: 7}, later())
    shared.refresh({0: at(7)})
    assert state(shared).is_ready
    shared.refresh({})
    assert shared.states() == {}


def test_age_of_answers_grows_while_the_writer_does_not_write() -> None:
    shared = SharedPartitions({})
    shared.refresh({0: at(7)})
    shared.observe_ends({0: 7}, read := later())
    shared.observe_ends({0: 9}, later())

    assert (state(shared).confirmed, state(shared).end_offset) == (read, 9)


def test_restarted_process_goes_on_with_what_was_ready() -> None:
    confirmed = Moment.now()
    shared = SharedPartitions({0: confirmed})

    shared.refresh({0: at(7), 1: at(3)})

    states = shared.states()
    assert states is not None
    assert {n: s.is_ready for n, s in states.items()} == {0: True, 1: False}
    assert states[0].confirmed == confirmed
