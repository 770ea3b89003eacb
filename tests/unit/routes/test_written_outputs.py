"""A route's note of what it has written: what a restart takes from it never misses an output, and never drops one."""

from typing import Any

import pytest

from include.kafka.origins import LanePartition, OutputOrigin, WrittenRecords
from include.position import Offsets
from spark_jobs.routing import written_outputs
from spark_jobs.routing.written_outputs import ALL_OUTPUTS, WrittenNote, WrittenOutputs

NO_CONSUMER: Any = None
RECORDS = WrittenRecords("postings", "balance")


class Topic:
    """An output topic of two partitions, with one source partition: the origins of each output partition, in order."""

    def __init__(self) -> None:
        self.written: list[list[OutputOrigin]] = [[], []]
        self.committed = Offsets()
        self.reads: list[Offsets] = []

    def write(self, output: int, *offsets: int) -> None:
        """Append outputs of these source offsets."""
        self.written[output] += [OutputOrigin(offset, 0) for offset in offsets]

    def commit(self, offset: int) -> None:
        """Commit the query up to a source offset."""
        self.committed = Offsets({0: offset})

    def end_offsets(self, *_arguments: object) -> tuple[int, ...]:
        """Return the ends."""
        return tuple(map(len, self.written))

    def read_origins(
        self, _consumer: object, _topic: str, _partitions: int, since: Offsets, _records: object
    ) -> dict[LanePartition, OutputOrigin]:
        """Return the newest origin of each pair from these offsets on."""
        self.reads.append(since)
        found = {LanePartition(0, q): origins[since.of(q) :] for q, origins in enumerate(self.written)}
        return {pair: max(origins) for pair, origins in found.items() if origins}


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    found = Topic()
    files: dict[str, str] = {}
    monkeypatch.setattr(written_outputs, "end_offsets", found.end_offsets)
    monkeypatch.setattr(written_outputs, "read_origins", found.read_origins)
    monkeypatch.setattr(written_outputs, "read_text", lambda _spark, path: files.get(path))
    monkeypatch.setattr(written_outputs, "write_text", lambda _spark, path, text: files.update({path: text}))
    return found


def outputs(topic: Topic) -> WrittenOutputs:
    """Return a run of the query, which shares nothing with the others but the note."""
    return WrittenOutputs(lambda: NO_CONSUMER, NO_CONSUMER, "note", "t", 2, RECORDS, lambda: topic.committed)


def test_a_note_survives_its_file() -> None:
    note = WrittenNote(Offsets({0: 5, 1: 7}), Offsets({0: 9}), {LanePartition(0, 1): OutputOrigin(12, 3)})
    assert WrittenNote.from_json(note.to_json()) == note


def test_without_a_note_the_whole_topic_is_read(topic: Topic) -> None:
    topic.write(0, 1, 3)
    topic.write(1, 2)
    assert outputs(topic).read() == {
        LanePartition(0, 0): OutputOrigin(3, 0),
        LanePartition(0, 1): OutputOrigin(2, 0),
    }
    assert topic.reads == [Offsets()]


def test_a_note_is_written_once_the_running_batch_is_committed(topic: Topic) -> None:
    run = outputs(topic)
    run.read()
    topic.write(0, 1, 3)
    run.note()
    run.note()
    assert outputs(topic).read() == {LanePartition(0, 0): OutputOrigin(3, 0)}
    assert topic.reads == [Offsets(), Offsets()], "nothing was committed, so nothing could be noted"

    topic.write(1, 4)
    topic.commit(5)
    run.note()
    topic.write(1, 6)
    assert outputs(topic).read() == {
        LanePartition(0, 0): OutputOrigin(4, ALL_OUTPUTS),
        LanePartition(0, 1): OutputOrigin(6, 0),
    }
    assert topic.reads[-1] == Offsets({0: 2, 1: 0})


def test_what_a_killed_run_wrote_beyond_the_commit_is_remembered(topic: Topic) -> None:
    first = outputs(topic)
    first.read()
    topic.write(0, *range(100))  # and killed before any commit
    second = outputs(topic)
    assert second.read() == {LanePartition(0, 0): OutputOrigin(99, 0)}
    second.note()
    topic.commit(50)
    second.note()
    # The records below the noted ends are not read again: the note itself must say that 50 to 99 are written.
    third = outputs(topic)
    assert third.read()[LanePartition(0, 0)] == OutputOrigin(99, 0)
    third.note()
    topic.write(0, 100)
    topic.commit(101)
    third.note()
    assert outputs(topic).read()[LanePartition(0, 0)] == OutputOrigin(100, ALL_OUTPUTS)


def test_a_restart_in_the_same_process_forgets_the_ends_of_the_run_before(topic: Topic) -> None:
    run = outputs(topic)
    run.read()
    run.note()
    topic.write(0, 1, 2)
    run.read()
    topic.commit(2)
    run.note()
    assert outputs(topic).read()[LanePartition(0, 0)] == OutputOrigin(2, 0)
    assert topic.reads[-1] == Offsets(), (
        "the ends of the run before must not be paired with a commit of this one"
    )


def test_what_lies_below_a_handover_is_never_written(topic: Topic) -> None:
    topic.write(0, 1, 9)
    run = outputs(topic)
    run.complete_below(Offsets({0: 5}))
    assert run.noted.committed == Offsets({0: 5})
    assert run.read() == {
        LanePartition(0, 0): OutputOrigin(9, 0),
        LanePartition(0, 1): OutputOrigin(4, ALL_OUTPUTS),
    }
    run.complete_below(Offsets({0: 3}))
    assert run.noted.committed == Offsets({0: 5}), "a repeated handover takes nothing back"
