"""Which outputs of a route or an emission are in its output topic, so that a restart writes each of the others once.

The newest origin of each pair of lane and output partition says it, and may stand far back: an output partition's newest record is of one
lane. The topic is therefore read from a noted offset on. A note is taken while the query runs, without reading: the ends of the
topic, and the source offsets of a later commit. All records below these ends were written in batches up to that commit, so that their
origins lie below its source offsets, or, written by an earlier run that got further before it was killed, are among those that this run
found at its start.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from include.kafka.log_reading import end_offsets
from include.kafka.origins import LanePartition, OutputOrigin, WrittenRecords, merge_origins, read_origins
from include.position import Offsets
from spark_jobs.runtime.checkpoint import read_text, write_text

# No event has as many outputs.
ALL_OUTPUTS = 2**31 - 1


@dataclass(frozen=True)
class WrittenNote:
    """What is written below these ends of the output topic: every output of the events below `committed`, and of older runs, `newest`."""

    ends: Offsets = field(default_factory=Offsets)
    committed: Offsets = field(default_factory=Offsets)
    newest: Mapping[LanePartition, OutputOrigin] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the note as JSON."""
        newest = [[*pair, origin.offset, origin.index] for pair, origin in self.newest.items()]
        return json.dumps({"ends": self.ends, "committed": self.committed, "newest": newest})

    @classmethod
    def from_json(cls, text: str) -> "WrittenNote":
        """Read a note."""
        fields = json.loads(text)
        newest = {
            LanePartition(p, q): OutputOrigin(offset, index) for p, q, offset, index in fields["newest"]
        }
        return cls(Offsets.from_json(fields["ends"]), Offsets.from_json(fields["committed"]), newest)


class WrittenOutputs:
    """The outputs that a route or an emission has written.

    session: returns the Spark session. path: the file of the note. topic, partitions: of the output. committed: reads the source offsets
    of the query's last commit.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        consumer: Consumer,
        path: str,
        topic: str,
        partitions: int,
        records: WrittenRecords,
        committed: Callable[[], Offsets],
    ) -> None:
        self._session = session
        self._consumer = consumer
        self._path = path
        self._topic = topic
        self._partitions = partitions
        self._records = records
        self._committed = committed
        self._at_start: dict[LanePartition, OutputOrigin] = {}
        self._ends: Offsets | None = None
        self._committed_before = Offsets()

    @property
    def noted(self) -> WrittenNote:
        """The last note."""
        text = read_text(self._session(), self._path)
        return WrittenNote() if text is None else WrittenNote.from_json(text)

    def complete_below(self, offsets: Offsets) -> None:
        """Note that nothing below these source offsets is to be written any more."""
        noted = self.noted
        note = replace(noted, committed=noted.committed.merge(offsets))
        write_text(self._session(), self._path, note.to_json())

    def read(self) -> dict[LanePartition, OutputOrigin]:
        """Return the newest origin of each pair; the query of the route must not be running."""
        note = self.noted
        below = {
            LanePartition(lane, q): OutputOrigin(offset - 1, ALL_OUTPUTS)
            for p, offset in note.committed.items()
            for lane in self._records.lanes(p)
            for q in range(self._partitions)
        }
        later = read_origins(self._consumer, self._topic, self._partitions, note.ends, self._records)
        self._at_start = merge_origins(merge_origins(below, note.newest), later)
        self._ends = None
        return self._at_start

    def note(self) -> None:
        """Write a note if the query has committed since the last call; called now and then while the query runs."""
        committed = self._committed()
        if self._ends is not None:
            if committed == self._committed_before:
                return
            newest = {
                pair: origin
                for pair, origin in self._at_start.items()
                if origin.offset >= committed.of(self._records.partition(pair.source))
            }
            write_text(self._session(), self._path, WrittenNote(self._ends, committed, newest).to_json())
        # First the ends, then the commit: what is below the ends belongs to the batch after this commit at the latest.
        self._ends = Offsets.of_ends(end_offsets(self._consumer, self._topic, self._partitions))
        self._committed_before = self._committed()
