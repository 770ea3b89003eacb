"""A route or an emission that ends at any numbered step, and once more in its next run, has written each output once and in order.

Its steps are those of `WrittenOutputs` and of the query around it: appends to the output topic, commits of the checkpoint, reads and
writes of the note. The query goes on between two steps of a note, as in the driver, where another thread takes the note.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from include.kafka.origins import LanePartition, OutputOrigin, WrittenRecords
from include.position import Offsets
from spark_jobs.routing import written_outputs
from spark_jobs.routing.origin_columns import NOT_WRITTEN
from spark_jobs.routing.written_outputs import WrittenOutputs

NO_CONSUMER: Any = None
ROUTE = WrittenRecords("postings", "balance")
EMISSION = WrittenRecords("receipts", "balance", tasks=2)
OUTPUTS, EVENTS = 2, 6
# A run has about as many steps, and its notes as many.
STEPS, NOTE_STEPS, BURST = 40, 16, 2
# Number of events in a batch of the first, second and third run: a killed run may have got further than the next one commits.
BATCHES = (3, 1, 2)
NEVER = -1


class CrashError(Exception):
    """The query, or its process, has been killed."""


class Route:
    """A route with two outputs of each event: its output topic, checkpoint and note survive a crash.

    note_after: number of the query's steps between two notes. switch: a step of the notes during which the query makes BURST steps.
    in_process: whether only the query ends at a crash, and its process starts it again.
    """

    def __init__(self, records: WrittenRecords, note_after: int, switch: int, *, in_process: bool) -> None:
        self._records = records
        self.written: list[list[OutputOrigin]] = [[] for _ in range(OUTPUTS)]
        self._committed = Offsets({0: 0})
        self._note: str | None = None
        self._note_after, self._switch = note_after, switch
        self._in_process = in_process
        self._query: Iterator[None] = iter(())
        self._outputs = self._new_outputs()
        self.steps = self._note_steps = 0

    def run(self, batch: int, crash_at: int) -> None:
        """Run the query to the end of the source and take notes, or until this step."""
        self.steps, self._note_steps, self._crash_at, self._query = 0, 0, crash_at, iter(())
        if not self._in_process:
            self._outputs = self._new_outputs()
        try:
            self._query = self._batches(self._outputs.read(), batch)
            while self._advance(self._note_after):
                self._outputs.note()
        except CrashError:
            return

    def _new_outputs(self) -> WrittenOutputs:
        return WrittenOutputs(
            lambda: NO_CONSUMER, NO_CONSUMER, "note", "t", OUTPUTS, self._records, self._read_committed
        )

    def _batches(self, written: dict[LanePartition, OutputOrigin], batch: int) -> Iterator[None]:
        """Append the outputs of each batch, then commit it."""
        for begin in range(self._committed.of(0), EVENTS, batch):
            end = min(begin + batch, EVENTS)
            for offset, output in product(range(begin, end), range(OUTPUTS)):
                origin = OutputOrigin(offset, output)
                if origin > written.get(LanePartition(self._lane(offset), output), NOT_WRITTEN):
                    self._step()
                    self.written[output].append(origin)
                    yield
            self._step()
            self._committed = Offsets({0: end})
            yield

    def _lane(self, offset: int) -> int:
        """Return the lane of an event: an emission's shuffle has two."""
        return offset % len(self._records.lanes(0))

    def _advance(self, steps: int) -> bool:
        """Let the query make steps; return whether there were so many left."""
        return all(next(self._query, self) is None for _ in range(steps))

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self._crash_at:
            raise CrashError

    def _step_of_note(self) -> None:
        self._step()
        self._note_steps += 1
        if self._note_steps == self._switch:
            self._advance(BURST)

    def _read_committed(self) -> Offsets:
        found = self._committed
        self._step_of_note()
        return found

    def end_offsets(self, *_arguments: object) -> tuple[int, ...]:
        """Return the ends of the output topic."""
        found = tuple(map(len, self.written))
        self._step_of_note()
        return found

    def read_origins(
        self, _consumer: object, _topic: str, _partitions: int, since: Offsets, _records: object
    ) -> dict[LanePartition, OutputOrigin]:
        """Return the newest origin of each pair from these offsets on."""
        self._step()
        found: dict[LanePartition, OutputOrigin] = {}
        for output, origins in enumerate(self.written):
            # In the order in which they were written: the newest record of a pair counts.
            found |= {
                LanePartition(self._lane(origin.offset), output): origin
                for origin in origins[since.of(output) :]
            }
        return found

    def read_text(self, *_arguments: object) -> str | None:
        """Return the note."""
        self._step()
        return self._note

    def write_text(self, _session: object, _path: str, text: str) -> None:
        """Replace the note: a step before it and one after it."""
        self._step_of_note()
        self._note = text
        self._step_of_note()


@pytest.mark.parametrize(("records", "in_process"), [(ROUTE, False), (ROUTE, True), (EMISSION, False)])
def test_each_output_is_written_once_in_order_after_two_crashes(
    monkeypatch: pytest.MonkeyPatch, records: WrittenRecords, *, in_process: bool
) -> None:
    routes: list[Route] = []

    def patch(name: str) -> None:
        monkeypatch.setattr(
            written_outputs,
            name,
            lambda *arguments: getattr(routes[-1], name)(*arguments),  # noqa: PLW0108 - another route each time
        )

    for name in ("end_offsets", "read_origins", "read_text", "write_text"):
        patch(name)
    expected = [[OutputOrigin(offset, output) for offset in range(EVENTS)] for output in range(OUTPUTS)]

    every, some = range(1, STEPS), range(4, STEPS, 12)
    crashes = [*product(every, some), *product(some, every)]
    for note_after, switch, (first, second) in product((1, 2), range(NOTE_STEPS), crashes):
        routes.append(Route(records, note_after, switch, in_process=in_process))
        for batch, crash_at in zip(BATCHES, (first, second, NEVER), strict=True):
            routes[-1].run(batch, crash_at)

        assert routes.pop().written == expected, (note_after, switch, first, second)
