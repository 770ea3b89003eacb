"""Publishes the progress of the driver's queries: one JSON record per query on the compacted topic `stream-progress`."""

import os
import time
from collections.abc import Iterable
from dataclasses import asdict

from include.kafka.compacted_topics import ReportPublisher
from include.settings import KafkaConnection
from include.stream.query_reports import QUERY_REPORTS, BatchProgress
from spark_jobs.streaming.supervised_query import SupervisedQuery

PUBLISH_INTERVAL_S = 2.0


class ProgressPublisher:
    """Publishes the progress of every query every two seconds, without ever waiting for a broker."""

    def __init__(self, kafka: KafkaConnection, master: str) -> None:
        self._reports = ReportPublisher(kafka, QUERY_REPORTS)
        self._master = master
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
        committed = {str(partition): offset for partition, offset in query.checkpoint.offsets.items()}
        batch = query.batches.last or BatchProgress(end_offsets=committed)
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
