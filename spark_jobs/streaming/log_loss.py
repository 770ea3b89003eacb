"""Detects that Kafka has lost records that a query had read or written, as after a power failure of brokers that do not sync.

Beside the checkpoint is a note of what the logs contained at a commit: the newest record that the query had read of each source
partition, and the ends of the topic that it writes. If that record is another one now, or a topic ends earlier, the query's state does
not follow from the log any more. New records at offsets that the query has read before would never be read.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from include.kafka.log_reading import end_offsets, record_at
from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from include.stream.checkpoints import log_note_path
from spark_jobs.runtime.checkpoint import read_text, remove_checkpoint, write_text
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, StartRefusedError

LOG = logging.getLogger(__name__)

LOST_RECORDS = (
    "Kafka has lost records: {}. The state no longer follows from the log, and new events at offsets that were read before would not "
    "be folded: rebuild the read model. The new version folds the log as it is."
)

# Interval for noting what the query's topics contain, unless it commits more often.
NOTE_INTERVAL_S = 60.0
# The shortest interval: before the first commit, and of a query that commits more often.
SHORTEST_NOTE_INTERVAL_S = 5.0


@dataclass(frozen=True)
class LogNote:
    """What the logs contained.

    read: the source offsets of a commit. newest: source partition -> checksum of the newest record before that offset, if there was one.
    record_ends: source partition -> the offset after this record; in the notes of earlier releases, it is that of `read`.
    written: the ends of the topic that the query writes. sink: that topic; empty in the notes of earlier releases.
    """

    read: Offsets
    newest: dict[int, int]
    written: Offsets
    sink: str = ""
    record_ends: Offsets = field(default_factory=Offsets)

    def to_json(self) -> str:
        """Return the note as JSON."""
        return json.dumps(
            {
                "read": self.read,
                "newest": self.newest,
                "written": self.written,
                "sink": self.sink,
                "record_ends": self.record_ends,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "LogNote":
        """Read a note."""
        fields = json.loads(text)
        return cls(
            Offsets.from_json(fields["read"]),
            {int(partition): checksum for partition, checksum in fields["newest"].items()},
            Offsets.from_json(fields["written"]),
            fields.get("sink", ""),
            Offsets.from_json(fields.get("record_ends", {})),
        )


class LogNotes:
    """The note of one query."""

    def __init__(self, spark: SparkSession, consumer: Consumer, endpoints: QueryEndpoints) -> None:
        self._spark = spark
        self._consumer = consumer
        self._endpoints = endpoints
        self._record_ends = RecordEnds(consumer)
        self._path = log_note_path(endpoints.checkpoint)
        self._noted: Offsets | None = None

    def note(self, read: Offsets) -> None:
        """Note what the logs contain, if the query has committed other source offsets since the last note."""
        if not read or read == self._noted:
            return
        endpoints = self._endpoints
        # The commit can be beyond the markers of transactions.
        found = self._record_ends.of({(endpoints.source_topic, p): offset for p, offset in read.items()})
        record_ends = Offsets({partition: end.offset for (_, partition), end in found.items()})
        newest = {
            partition: checksum
            for partition, end in record_ends.items()
            if (checksum := self._checksum(partition, end - 1)) is not None
        }
        sink = endpoints.sink_topic
        note = LogNote(read, newest, self._ends(sink, endpoints.sink_partitions), sink, record_ends)
        write_text(self._spark, self._path, note.to_json())
        self._noted = read

    def lost_records(self, read: Offsets) -> str | None:
        """Return what the logs have lost, given the source offsets of the last commit; None if nothing is known to be lost."""
        source, sink = self._endpoints.source_topic, self._endpoints.sink_topic
        ends = self._ends(source)
        for partition, offset in read.items():
            if offset > ends.of(partition):
                return f"{source}/{partition} was read up to offset {offset} and ends at {ends.of(partition)} now"
        text = read_text(self._spark, self._path)
        if text is None:
            return None
        note = LogNote.from_json(text)
        for partition, checksum in note.newest.items():
            offset = note.record_ends.get(partition, note.read.of(partition)) - 1
            if self._checksum(partition, offset) not in {None, checksum}:
                return f"the record at offset {offset} of {source}/{partition} is not the one that was read"
        if note.sink not in {"", sink}:
            return None
        if note.read == read and note.sink:
            self._noted = read
        ends = self._ends(sink, self._endpoints.sink_partitions)
        for partition, end in note.written.items():
            if end > ends.of(partition):
                return f"{sink}/{partition} ended at offset {end} and ends at {ends.of(partition)} now"
        return None

    def forget(self) -> None:
        """Remove the query's checkpoint and the note."""
        remove_checkpoint(self._spark, self._endpoints.checkpoint)
        remove_checkpoint(self._spark, self._path)
        self._noted = None

    def _ends(self, topic: str, partitions: int = 0) -> Offsets:
        return Offsets.of_ends(end_offsets(self._consumer, topic, partitions or self._endpoints.partitions))

    def _checksum(self, partition: int, offset: int) -> int | None:
        """Return the checksum of a source record; None if there is none at this offset, as after its retention."""
        if offset < 0:
            return None
        record = record_at(self._consumer, self._endpoints.source_topic, partition, offset)
        if record is None or record.offset() != offset:
            return None
        _, timestamp_ms = record.timestamp()
        return crc32(record.value() or b"", crc32(record.key() or b"", timestamp_ms & 0xFFFFFFFF))


class CommitNotes:
    """Compares the notes of a query with its logs before it starts, and takes new ones while it runs, with those of its specification.

    committed: reads the source offsets of the query's last commit.
    """

    def __init__(self, logs: LogNotes, spec: QuerySpec, committed: Callable[[], Offsets]) -> None:
        self._logs = logs
        self._spec = spec
        self._committed = committed
        self._due_s = 0.0

    def require_whole_logs(self) -> None:
        """Raise StartRefusedError if Kafka has lost records of the query's topics, or let the query read its source again."""
        read = self._committed()
        lost = self._logs.lost_records(read) if read else None
        if lost is None:
            return
        if not self._spec.rereads_after_loss:
            raise StartRefusedError(LOST_RECORDS.format(lost))
        LOG.warning(
            "Kafka has lost records: %s; query %s starts at the first event again", lost, self._spec.name
        )
        self._logs.forget()

    def take_if_due(self) -> None:
        """Take them about once a minute."""
        if time.monotonic() >= self._due_s:
            self.take()

    def take(self) -> None:
        """Take them now; a failure is logged, because the query itself does not need them."""
        self._due_s = time.monotonic() + SHORTEST_NOTE_INTERVAL_S
        try:
            read = self._committed()
            self._logs.note(read)
            self._spec.note()
            if read:
                interval_s = max(SHORTEST_NOTE_INTERVAL_S, self._spec.triggers.real_time_interval_s)
                self._due_s = time.monotonic() + min(NOTE_INTERVAL_S, interval_s)
        except Exception as error:  # noqa: BLE001 - any error of Spark or Kafka
            LOG.warning("query %s: what its topics contain could not be noted: %s", self._spec.name, error)
