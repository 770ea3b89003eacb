"""Every finished batch of a query is counted once, also if several end between two readings."""

import json
import logging

import pytest

from include.spark.stream_config import KEPT_BATCHES, STREAM_CONFIG
from spark_jobs.streaming.commits import batch_reader
from spark_jobs.streaming.commits.batch_reader import READ_INTERVAL_S, BatchReader
from tests.support.waiting import MovedClock


class Report:
    """Spark's report on a batch that dropped some events."""

    def __init__(self, batch_id: int, dropped: int = 0) -> None:
        self._fields = {
            "batchId": batch_id,
            "timestamp": "2026-11-29T10:00:00.000Z",
            "durationMs": {"triggerExecution": 60_000},
            "numInputRows": 7,
            "processedRowsPerSecond": 3.5,
            "stateOperators": [
                {"numRowsTotal": 4, "memoryUsedBytes": 512, "numRowsDroppedByWatermark": dropped}
            ],
            "sources": [{"endOffset": {"events": {"0": 10 * batch_id}}}],
        }

    def batchId(self) -> int:  # noqa: N802 - Spark's name
        """Return the number of the batch."""
        return int(str(self._fields["batchId"]))

    def json(self) -> str:
        """Return all fields."""
        return json.dumps(self._fields)


class Query:
    """A fake of a running query and its Java object. lists_read: how often the list of all reports was requested."""

    def __init__(self) -> None:
        self._jsq = self
        self.reports: list[Report] = []
        self.lists_read = 0

    def end_batch(self, batch_id: int, dropped: int = 0) -> None:
        """End a batch; Spark forgets the oldest one."""
        self.reports = [*self.reports, Report(batch_id, dropped)][-KEPT_BATCHES:]

    def lastProgress(self) -> Report | None:  # noqa: N802 - Spark's name
        """Return the newest report."""
        return self.reports[-1] if self.reports else None

    def recentProgress(self) -> list[Report]:  # noqa: N802 - Spark's name
        """Return all reports, oldest first."""
        self.lists_read += 1
        return self.reports


def test_batch_is_reported_with_its_offsets_state_and_end() -> None:
    reader, query = BatchReader("balance/v1"), Query()
    reader.read(query)
    assert reader.last is None

    query.end_batch(3)
    reader.read(query)
    assert reader.last is not None
    assert (reader.last.batch_id, reader.last.end_offsets) == (3, {"0": 30})
    assert (reader.last.state_rows, reader.last.state_bytes, reader.last.input_rows) == (4, 512, 7)
    assert (reader.last.processed_rows_per_s, reader.last.input_rows_per_s) == (3.5, 0.0)
    assert reader.last.finished_at == "2026-11-29T10:01:00+00:00"


def test_commits_of_an_earlier_run_are_none_of_this_one() -> None:
    reader, query = BatchReader("balance/v1"), Query()
    assert reader.committed == {}
    query.end_batch(3)
    reader.read(query)
    assert reader.committed == {0: 30}

    # Its topic may have been created again meanwhile.
    reader.begin()
    assert reader.committed == {}
    assert reader.last is not None, "what is reported until the next commit"


def test_late_events_of_all_batches_between_two_readings_are_counted_once_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader, query = BatchReader("windows/v1"), Query()
    query.end_batch(0, dropped=1)
    reader.read(query)
    for batch in range(1, KEPT_BATCHES + 1):
        query.end_batch(batch, dropped=2)
    reader.read(query)
    reader.read(query)

    assert reader.last is not None
    assert reader.last.dropped_events == 1 + 2 * KEPT_BATCHES
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1 + KEPT_BATCHES
    assert "2 events came later than their state is kept" in errors[-1].getMessage()
    assert not [record for record in caplog.records if record.levelno == logging.WARNING]


def test_spark_keeps_as_many_reports_as_the_reader_relies_on() -> None:
    assert STREAM_CONFIG["spark.sql.streaming.numRecentProgressUpdates"] == str(KEPT_BATCHES)


def test_batches_that_ended_unread_are_named_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    reader, query = BatchReader("balance/v1"), Query()
    query.end_batch(0)
    reader.read(query)
    for batch in range(1, KEPT_BATCHES + 2):
        query.end_batch(batch)
    reader.read(query)

    assert "no report on the batches after 0" in caplog.text
    assert reader.last is not None
    assert reader.last.batch_id == KEPT_BATCHES + 1


def test_restart_that_repeats_a_batch_reports_it_and_keeps_the_count() -> None:
    reader, first, second = BatchReader("windows/v1"), Query(), Query()
    for query in (first, second):
        reader.begin()
        query.end_batch(5, dropped=3)
        reader.read(query)

    assert reader.last is not None
    assert (reader.last.batch_id, reader.last.dropped_events) == (5, 6)


def test_all_reports_are_requested_only_if_several_batches_have_ended() -> None:
    reader, query = BatchReader("balance/v1"), Query()
    for batch in range(3):
        query.end_batch(batch)
        reader.read(query)
        reader.read(query)
    assert query.lists_read == 0

    query.end_batch(3)
    query.end_batch(4)
    reader.read(query)
    assert query.lists_read == 1


def test_reports_are_requested_only_when_the_next_commit_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, query, clock = BatchReader("balance/v1"), Query(), MovedClock()
    monkeypatch.setattr(batch_reader, "time", clock)

    def newest_after(seconds: float) -> int:
        clock.now_s += seconds
        reader.read_if_due(query)
        return -1 if reader.last is None else reader.last.batch_id

    reader.begin(60)
    query.end_batch(0)
    assert [newest_after(47), newest_after(1)] == [-1, 0]
    query.end_batch(1)
    assert [newest_after(47), newest_after(1)] == [0, 1]

    # In batches, one can end at any time.
    reader.begin()
    query.end_batch(2)
    assert newest_after(READ_INTERVAL_S) == 2


def test_report_that_cannot_be_read_does_not_end_the_query(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Report):
        def json(self) -> str:
            return "{}"

    reader, query = BatchReader("balance/v1"), Query()
    query.reports = [Broken(0)]
    reader.read(query)

    assert reader.last is None
    assert "cannot be read: {}" in caplog.text
