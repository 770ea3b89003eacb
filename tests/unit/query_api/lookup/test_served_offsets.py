"""A node never answers from an older state of a partition than it has answered from before, whichever store that was."""

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from include.nodes.peers import HOP_ANY, SERVED_HEADER, Hop, PeerResponse, Peers, ServedOffset
from include.settings import Settings
from query_api.cluster.cluster_observer import ClusterView
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import FailureReason, LocalAnswer, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.lookup.served_offsets import MAX_SLOTS, ServedOffsets, read_served, served_path
from query_api.materializer.fold_watch import forget_lost, read_all_served
from query_api.materializer.version_follower import VersionReference
from query_api.store.base import Binding, Change
from tests.support.waiting import wait_until
from tests.unit.query_api.balance_record import balance_value
from tests.unit.query_api.lookup.node_files import KEY, NodeFiles, other_node

TARGET = "/lookup"


@pytest.fixture
def node(settings: Settings) -> NodeFiles:
    """A node whose store has read one record of the changelog."""
    node = NodeFiles(settings)
    node.create_store(1, [Change(KEY, 3, 0, balance_value())])
    node.publish(1)
    return node


def lookups_of(settings: Settings) -> Lookups:
    """Return the lookups of one HTTP worker."""
    return Lookups(LocalLookup(settings), Peers())


def answer(lookups: Lookups, hop: Hop | None = None) -> LocalAnswer | PeerResponse:
    return lookups.answer(lookups.local.locate("balance", KEY), TARGET, hop)


def note_answer(lookups: Lookups, next_offset: int) -> None:
    location = lookups.local.locate("balance", KEY)
    lookups.local.served.of_location(location).extend(location.partition, next_offset)


def refusal(lookups: Lookups, hop: Hop | None = None) -> LookupFailedError:
    with pytest.raises(LookupFailedError) as refused:
        answer(lookups, hop)
    return refused.value


def _reason(lookups: Lookups) -> FailureReason | None:
    try:
        answer(lookups)
    except LookupFailedError as error:
        return error.reason
    return None


def test_new_owner_does_not_answer_from_an_older_state_than_the_previous_owner(
    settings: Settings, node: NodeFiles
) -> None:
    with other_node(200, {SERVED_HEADER: "1/8"}) as owner:
        node.publish(1, standby=owner.url, owner=owner.url)
        assert isinstance(answer(lookups_of(settings)), PeerResponse)
        assert owner.served == ["1/0"]
    node.publish(1)

    refused = refusal(lookups_of(settings))

    assert refused.reason is FailureReason.NOT_READY
    assert "has not read partition 0 of balance v1 up to changelog offset 8" in refused.detail


def test_new_owner_answers_once_it_has_caught_up_with_the_previous_one(
    settings: Settings, node: NodeFiles
) -> None:
    lookups = lookups_of(settings)
    note_answer(lookups, 2)

    node.append(1, Change(KEY, 4, 1, balance_value()), next_offset=2)

    assert isinstance(answer(lookups), LocalAnswer)


def test_rebuilt_store_answers_only_from_the_state_that_was_answered(
    settings: Settings, node: NodeFiles
) -> None:
    lookups = lookups_of(settings)
    assert isinstance(answer(lookups), LocalAnswer)

    node.replace_store(1)

    # Not that the key is unknown. Until the worker notices, it answers from the removed store.
    wait_until(lambda: _reason(lookups) is FailureReason.NOT_READY, "the worker has noticed", timeout_s=10)


@pytest.mark.usefixtures("node")
def test_another_node_is_told_what_was_answered_and_refuses_if_it_is_behind(settings: Settings) -> None:
    lookups = lookups_of(settings)
    assert isinstance(answer(lookups, Hop(HOP_ANY, ServedOffset(1, 1))), LocalAnswer)

    assert refusal(lookups, Hop(HOP_ANY, ServedOffset(1, 2))).reason is FailureReason.NOT_READY

    assert isinstance(answer(lookups, Hop(HOP_ANY, ServedOffset(2, 2))), LocalAnswer), (
        "another version's offset"
    )


def _note_in_another_process(settings: Settings) -> None:
    note_answer(lookups_of(settings), 5)


@pytest.mark.usefixtures("node")
def test_workers_share_what_was_answered_and_it_outlives_them(settings: Settings) -> None:
    first = lookups_of(settings)
    assert isinstance(answer(first), LocalAnswer)
    process = multiprocessing.get_context("spawn").Process(target=_note_in_another_process, args=(settings,))
    process.start()
    process.join(60)

    assert refusal(first).reason is FailureReason.NOT_READY
    assert refusal(lookups_of(settings)).reason is FailureReason.NOT_READY


def _hold_slot(store_dir: Path, number: int, is_over: Connection) -> None:
    ServedOffsets(store_dir, workers=2).of_version("balance", 1, 1).extend(0, number)
    is_over.send(None)
    is_over.recv()


def test_the_workers_of_two_servers_have_their_own_slots(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    # Two of each server, and two that are being replaced.
    pipes = [context.Pipe() for _ in range(6)]
    workers = [
        context.Process(target=_hold_slot, args=(tmp_path, number, other))
        for number, (_, other) in enumerate(pipes, start=1)
    ]
    for worker in workers:
        worker.start()
    for own, _ in pipes:
        assert own.poll(60)

    slots = read_served(served_path(tmp_path, "balance", 1), partitions=MAX_SLOTS)
    assert sum(value > 0 for value in slots) == len(workers)
    assert max(slots) == len(workers)

    for (own, _), worker in zip(pipes, workers, strict=True):
        own.send(None)
        worker.join(60)


def test_offsets_of_versions_that_have_ended_are_removed(tmp_path: Path) -> None:
    served = ServedOffsets(tmp_path, workers=2)
    for version in (1, 2):
        served.of_version("balance", version, 4).extend(3, 10 * version)
    served.of_version("other", 1, 4).extend(0, 5)

    served.keep(["balance"], {("balance", 2)})

    assert not served_path(tmp_path, "balance", 1).exists()
    assert (served.of_version("balance", 2, 4).of(3), served.of_version("other", 1, 4).of(0)) == (20, 5)
    assert read_served(served_path(tmp_path, "balance", 2), 4) == [0, 0, 0, 20]


def test_offsets_that_the_changelog_has_lost_are_forgotten(tmp_path: Path) -> None:
    served = ServedOffsets(tmp_path, workers=2)
    served.of_version("balance", 1, 2).extend(0, 10)
    served.of_version("balance", 1, 2).extend(1, 10)
    reference = VersionReference("balance", 1, 2, Binding("c", "changelog", "t"))
    before = read_all_served(tmp_path, [reference])

    forget_lost(tmp_path, before, ClusterView(ends={("changelog", 0): 10, ("changelog", 1): 12}))
    served.keep(["balance"], {("balance", 1)})
    assert served.of_version("balance", 1, 2).of(0) == 10

    forget_lost(tmp_path, before, ClusterView(ends={("changelog", 0): 9, ("changelog", 1): 12}))
    served.keep(["balance"], {("balance", 1)})
    assert served.of_version("balance", 1, 2).of(0) == 0


def test_full_disk_does_not_stop_answers(tmp_path: Path) -> None:
    (tmp_path / "served").write_text("in the place of the directory")
    served = ServedOffsets(tmp_path, workers=2)

    served.of_version("balance", 1, 2).extend(0, 10)

    assert served.of_version("balance", 1, 2).of(0) == 10
