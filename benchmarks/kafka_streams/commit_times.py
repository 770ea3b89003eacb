"""When the transaction of a record was committed, which is when readers of committed records can see it.

Clients do not receive the markers at a transaction's end, so they are read from the broker's files.
Source of the format: Kafka's documentation, "Record Batch".
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Message

from include.settings import Settings
from stack.components.kafka import data_directory

# First offset, length of what follows these two fields, leader's epoch, format, checksum, attributes, last offset's delta,
# first and largest timestamp. Three further fields of the producer and the number of records follow.
_HEADER = struct.Struct(">qiibIhiqq")
_LENGTH_END = 12
_IS_CONTROL = 0x20


class CommitTimes:
    """The ends of all transactions of a topic whose partitions are each written by one producer at a time."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._markers: dict[int, list[tuple[int, int]]] = {}
        for folder in data_directory(settings.home).glob(f"{topic}-*"):
            partition = int(folder.name.rpartition("-")[2])
            self._markers[partition] = sorted(
                marker for segment in folder.glob("*.log") for marker in markers(segment)
            )

    def committed_ms(self, record: Message) -> int:
        """Return when the transaction of a committed record was ended, in ms of the Unix clock."""
        ends = self._markers[record.partition() or 0]
        _, ended_ms = ends[bisect_left(ends, (record.offset() or 0, 0))]
        return ended_ms


def markers(segment: Path) -> Iterator[tuple[int, int]]:
    """Yield (offset, time in ms) of each end of a transaction in a segment of a partition."""
    with segment.open("rb") as batches:
        start = 0
        while len(header := batches.read(_HEADER.size)) == _HEADER.size:
            offset, length, _, _, _, attributes, _, _, newest_ms = _HEADER.unpack(header)
            if attributes & _IS_CONTROL:
                yield offset, newest_ms
            start += _LENGTH_END + length
            batches.seek(start)
