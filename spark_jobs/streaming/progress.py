"""Publishes the progress of the driver's queries: one JSON record per query on the compacted topic `stream-progress`."""

import json
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from include.kafka.compacted_topics import ReportPublisher
from include.stream.query_reports import QUERY_REPORTS, BatchProgress
from spark_jobs.streaming.supervised_query import SupervisedQuery

LOG = logging.getLogger(__name__)
PUBLISH_INTERVAL_S = 2.0


class ProgressListener:
    """Records the last batch of each query.

    Spark calls it directly. PySpark's own listener makes a request to the JVM for each number of an event.
    """

    class Java:
        """The interface that Py4J implements with this class."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)

    def __init__(self) -> None:
        self.by_query: dict[str, BatchProgress] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802, ANN401 - Spark's name; a Java object
        """Do nothing."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802, ANN401
        """Record the batch."""
        progress = json.loads(event.json())["progress"]
        operators = progress["stateOperators"]
        name = progress["name"] or progress["id"]
        dropped = sum(operator["numRowsDroppedByWatermark"] for operator in operators)
        if dropped:
            LOG.error(
                "query %s: %d events came later than their state is kept, and are not folded. Hint: rebuild the read model; some "
                "partitions of its topic were written hours ahead of others.",
                name,
                dropped,
            )
        before = self.by_query.get(name, BatchProgress()).dropped_events
        self.by_query[name] = BatchProgress(
            batch_id=progress["batchId"],
            input_rows=progress["numInputRows"],
            # Spark leaves out a rate that is no number.
            input_rows_per_s=progress.get("inputRowsPerSecond", 0.0),
            processed_rows_per_s=progress.get("processedRowsPerSecond", 0.0),
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            dropped_events=before + dropped,
            end_offsets=_end_offsets(progress["sources"]),
            finished_at=datetime.now(UTC).isoformat(),
        )

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802, ANN401
        """Do nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802, ANN401
        """Do nothing."""


def _end_offsets(sources: list[dict[str, Any]]) -> dict[str, int]:
    """Return the offset of each partition; none for a source that is not a topic."""
    end = sources[0]["endOffset"] if sources else None
    if not isinstance(end, dict) or len(end) != 1:
        return {}
    (by_partition,) = end.values()
    return dict(by_partition) if isinstance(by_partition, dict) else {}


def add_progress_listener(spark: SparkSession) -> ProgressListener:
    """Attach a listener to the session and return it."""
    listener = ProgressListener()
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - as PySpark does for a listener of its own class
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    streaming = gateway.jvm.org.apache.spark.sql.streaming
    streams: Any = spark.streams
    streams._jsqm.addListener(streaming.PythonStreamingQueryListenerWrapper(listener))  # noqa: SLF001 - as above
    return listener


class ProgressPublisher:
    """Publishes the progress of every query every two seconds, without ever waiting for a broker."""

    def __init__(self, bootstrap_servers: str, master: str, listener: ProgressListener) -> None:
        self._reports = ReportPublisher(bootstrap_servers, QUERY_REPORTS)
        self._master = master
        self._listener = listener
        self._next_s = 0.0

    def publish(self, queries: Iterable[SupervisedQuery], *, now: bool = False) -> None:
        """Publish if the last time was at least two seconds ago, or if `now` is set."""
        if not now and time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + PUBLISH_INTERVAL_S
        for query in queries:
            self._reports.publish(query.name, self._fields(query))

    def close(self) -> None:
        """Send what is still in the producer's queue."""
        self._reports.close()

    def _fields(self, query: SupervisedQuery) -> dict[str, object]:
        committed = {str(partition): offset for partition, offset in query.committed_offsets.items()}
        batch = self._listener.by_query.get(query.name, BatchProgress(end_offsets=committed))
        return {
            "query": query.name,
            "source_topic": query.spec.endpoints.source_topic,
            "phase": query.phase.value,
            "restarts": query.restarts,
            "last_error": query.last_error,
            "failing_for_s": query.failing_for_s,
            "task_slots": query.spec.slot_claim.slots,
            "driver_pid": os.getpid(),
            "master": self._master,
            "last_batch": asdict(batch),
        }
