"""Reads Spark's reports on the finished batches of a query, each report once.

Spark keeps a number of reports of a running query (`KEPT_BATCHES` in include/spark/stream_config.py). They are read after a commit: a listener in Python
would be called during it, while no event is folded. Each request to the JVM costs about as much as a listener's call, so they are few.
"""

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from include.position import Offsets
from include.stream.query_reports import BatchProgress

LOG = logging.getLogger(__name__)

# Batches can end every second, and a server that does not respond delays the reader for up to half a minute: far fewer than are kept.
READ_INTERVAL_S = 5.0
# For what share of the interval of commits no report is expected after a commit.
NO_COMMIT_FOR = 0.8


class JavaProgress(Protocol):
    """The part of Spark's StreamingQueryProgress that is read."""

    def batchId(self) -> int:  # noqa: N802 - Spark's name
        """Return the number of the batch."""

    def json(self) -> str:
        """Return all fields."""


class BatchReader:
    """The batches of one query, over all of its runs since the driver started.

    last: the last finished batch, with the number of events that all batches have dropped.
    """

    def __init__(self, name: str) -> None:
        self.last: BatchProgress | None = None
        self._name = name
        self._newest_id = -1
        self._due_s = 0.0
        self._pause_s = READ_INTERVAL_S

    @property
    def committed(self) -> Offsets:
        """The source offsets of the newest commit of this run; empty before the first one that has been read."""
        return Offsets.from_json(self.last.end_offsets) if self.last and self._newest_id >= 0 else Offsets()

    def begin(self, commit_interval_s: float = 0.0) -> None:
        """Note that the query has started again: Spark's reports begin with this run, which may repeat a batch.

        commit_interval_s: the interval in real-time mode; 0: a batch can end at any time.
        """
        self._newest_id = -1
        self._pause_s = max(READ_INTERVAL_S, NO_COMMIT_FOR * commit_interval_s)
        self._due_s = time.monotonic() + self._pause_s

    def read(self, query: Any) -> None:  # noqa: ANN401 - PySpark's StreamingQuery does not declare its Java object
        """Read the new reports on the batches of this run."""
        for progress in _later_than(self._newest_id, query._jsq):  # noqa: SLF001 - its properties make a request for each figure
            if self._newest_id >= 0 and progress.batchId() > self._newest_id + 1:
                LOG.warning("query %s: no report on the batches after %d", self._name, self._newest_id)
            self._newest_id = progress.batchId()
            report = progress.json()
            try:
                self._add(json.loads(report))
            except (KeyError, TypeError, ValueError):
                # The query itself does not need it.
                LOG.exception("query %s: a report of Spark cannot be read: %s", self._name, report)

    def read_if_due(self, query: Any) -> None:  # noqa: ANN401 - as above
        """Read if a batch may have ended, at most every READ_INTERVAL_S."""
        if time.monotonic() < self._due_s:
            return
        newest_id = self._newest_id
        self.read(query)
        pause_s = READ_INTERVAL_S if newest_id == self._newest_id else self._pause_s
        self._due_s = time.monotonic() + pause_s

    def _add(self, progress: dict[str, Any]) -> None:
        operators = progress["stateOperators"]
        dropped = sum(operator["numRowsDroppedByWatermark"] for operator in operators)
        if dropped:
            LOG.error(
                "query %s: %d events came later than their state is kept, and are not folded. Hint: rebuild the read model; some "
                "partitions of its topic were written hours ahead of others.",
                self._name,
                dropped,
            )
        self.last = BatchProgress(
            batch_id=progress["batchId"],
            input_rows=progress["numInputRows"],
            # Spark leaves out a rate that is no number.
            input_rows_per_s=progress.get("inputRowsPerSecond", 0.0),
            processed_rows_per_s=progress.get("processedRowsPerSecond", 0.0),
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            dropped_events=dropped + (0 if self.last is None else self.last.dropped_events),
            end_offsets=_end_offsets(progress["sources"]),
            finished_at=_finished_at(progress),
        )


def _later_than(batch_id: int, java_query: Any) -> Iterator[JavaProgress]:  # noqa: ANN401 - a Java object
    """Yield the reports on the batches after this one, oldest first."""
    newest = java_query.lastProgress()
    if newest is None or newest.batchId() <= batch_id:
        return
    later = [newest]
    if newest.batchId() > batch_id + 1:
        # From the end: each access is a request to the JVM.
        kept = java_query.recentProgress()
        later = []
        for index in reversed(range(len(kept))):
            if kept[index].batchId() <= batch_id:
                break
            later.append(kept[index])
    yield from reversed(later)


def _end_offsets(sources: list[dict[str, Any]]) -> dict[str, int]:
    """Return the offset of each partition; none for a source that is not a topic."""
    end = sources[0]["endOffset"] if sources else None
    if not isinstance(end, dict) or len(end) != 1:
        return {}
    (by_partition,) = end.values()
    return dict(by_partition) if isinstance(by_partition, dict) else {}


def _finished_at(progress: dict[str, Any]) -> str:
    began = datetime.fromisoformat(progress["timestamp"])
    took = timedelta(milliseconds=progress["durationMs"].get("triggerExecution", 0))
    return (began + took).astimezone(UTC).isoformat()
