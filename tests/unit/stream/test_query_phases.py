"""A query catches up, runs in real time, and keeps its guard until it is stopped; the query of a rebuild stops once caught up.

A fake that the test ends replaces Spark's query; a number of events replaces the topic and the checkpoint.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from include.stream.query_reports import Phase
from spark_jobs.streaming import lag, mode_choice, supervised_query
from spark_jobs.streaming.commits.commit_interval import Change
from spark_jobs.streaming.log_loss import LogNotes
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.supervised_query import SupervisedQuery
from tests.support.query_specs import NO_CONSUMER, NO_SPARK, TRIGGERS, spec

LARGE_LAG = TRIGGERS.catch_up_threshold_events + 1


class EndableQuery:
    """Replaces Spark's query: active until a test ends it."""

    def __init__(self) -> None:
        self._jsq = self
        self.isActive = True
        self.error: Exception | None = None

    def lastProgress(self) -> None:  # noqa: N802 - Spark's name
        """Return that no batch has ended."""

    def exception(self) -> Exception | None:
        """Return the error that ended the query, if any."""
        return self.error

    def stop(self) -> None:
        """End the query."""
        self.isActive = False


class Spark:
    """The started queries, oldest first, and the lag of the checkpoint behind the topic."""

    def __init__(self) -> None:
        self.started: list[EndableQuery] = []
        self.lag = 0
        self.guards = 0
        self.committed = Offsets()
        self.lost: str | None = None
        self.noted: list[Offsets] = []

    def start(self, *_arguments: object) -> EndableQuery:
        """Start a query."""
        self.started.append(EndableQuery())
        return self.started[-1]

    def end(self, error: Exception | None = None) -> None:
        """End the newest query."""
        self.started[-1].error = error
        self.started[-1].stop()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Count the active guards."""
        self.guards += 1
        yield
        self.guards -= 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    spark = Spark()
    replacements: dict[str, Callable[..., Any]] = {
        "start_catch_up": spark.start,
        "start_real_time": spark.start,
        "start_batches": spark.start,
        "remove_uncommitted": lambda *_: False,
        "learn_ids": lambda *_: None,
    }
    for name, replacement in replacements.items():
        monkeypatch.setattr(supervised_query, name, replacement)
    topic: dict[str, Callable[..., Any]] = {
        "committed_offsets": lambda *_: spark.committed,
        "end_offsets": lambda *_: (spark.lag,),
        "unread_ends": lambda _consumer, _topic, ends, _read: ends,
    }
    for name, replacement in topic.items():
        monkeypatch.setattr(lag, name, replacement)
    monkeypatch.setattr(LogNotes, "lost_records", lambda *_: spark.lost)
    monkeypatch.setattr(LogNotes, "note", lambda _self, read: spark.noted.append(read))
    monkeypatch.setattr(
        lag, "end_offsets_of_topics", lambda _consumer, topics: dict.fromkeys(topics, (spark.lag,))
    )
    monkeypatch.setattr(RecordEnds, "unread", lambda _self, _topic, ends, _read: ends)
    monkeypatch.setattr(lag, "INTERVAL_S", 0.0)
    return spark


def polled(spark: Spark, query_spec: QuerySpec) -> SupervisedQuery:
    query = SupervisedQuery(NO_SPARK, replace(query_spec, guard=spark.guard), NO_CONSUMER)
    query.poll()
    return query


def test_query_with_a_large_lag_catches_up_before_it_runs_in_real_time(spark: Spark) -> None:
    spark.lag = LARGE_LAG
    query = polled(spark, spec())
    assert query.phase is Phase.CATCHING_UP

    spark.lag = 0
    spark.end()
    query.poll()
    assert query.phase is Phase.CATCHING_UP, "this poll only handles the end of the batch query"
    query.poll()
    assert (query.phase, query.restarts) == (Phase.REAL_TIME, 0)


def test_guard_is_held_over_a_restart_until_the_query_is_stopped(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised_query, "FIRST_BACKOFF_S", 0.0)
    query = polled(spark, spec())
    spark.end(ValueError("a task failed"))
    query.poll()
    assert (query.phase, query.last_error, spark.guards) == (Phase.FAILED, "a task failed", 1)

    query.poll()
    assert (query.phase, query.last_error, query.restarts, spark.guards) == (Phase.REAL_TIME, "", 1, 1)
    query.stop()
    assert (spark.started[-1].isActive, spark.guards) == (False, 0)


def test_query_that_falls_behind_continues_in_batches_and_comes_back(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mode_choice, "BEHIND_S", 0.0)
    triggers = replace(TRIGGERS, min_batch_time_s=0.0)
    query = polled(spark, replace(spec(), written=Offsets, triggers=triggers))
    query.poll()
    assert (query.phase, query.restarts) == (Phase.REAL_TIME, 0)

    spark.lag = LARGE_LAG
    query.poll()
    assert (query.phase, spark.started[-1].isActive) == (Phase.STARTING, False), "stopped"
    query.poll()
    query.poll()
    assert (query.phase, query.restarts) == (Phase.BATCHES, 0), "it does not keep up yet"

    spark.lag = 0
    query.poll()
    query.poll()
    assert (query.phase, query.restarts, spark.guards) == (Phase.REAL_TIME, 0, 1)


def test_query_whose_output_does_not_tell_its_lag_stays_in_real_time(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mode_choice, "BEHIND_S", 0.0)
    query = polled(spark, spec())
    spark.lag = LARGE_LAG
    query.poll()
    assert query.phase is Phase.REAL_TIME


def test_catch_up_of_a_rebuild_reads_until_its_lag_is_small_and_stops(spark: Spark) -> None:
    catch_up = replace(spec(), triggers=replace(TRIGGERS, stop_when_caught_up=True))
    query = polled(spark, catch_up)
    assert query.phase is Phase.CATCHING_UP, "in batches, however small the lag"

    spark.lag = LARGE_LAG
    spark.end()
    query.poll()
    query.poll()
    assert (query.phase, len(spark.started)) == (Phase.CATCHING_UP, 2)

    spark.lag = LARGE_LAG - 1
    spark.end()
    query.poll()
    assert (query.phase, spark.guards) == (Phase.STOPPED, 0)


def test_query_that_emits_each_event_catches_up_in_real_time(spark: Spark) -> None:
    spark.lag = LARGE_LAG
    query = polled(spark, replace(spec(), triggers=replace(TRIGGERS, real_time_only=True)))
    assert query.phase is Phase.REAL_TIME


def test_query_starts_again_only_when_what_it_has_sent_has_arrived(spark: Spark) -> None:
    query = polled(spark, replace(spec(), settles_in_s=60.0))
    query.pause()
    query.poll()
    assert (query.phase, len(spark.started)) == (Phase.STARTING, 1)


@pytest.mark.parametrize(("uncommitted", "started"), [(0, 2), (1, 1)])
def test_change_of_the_interval_waits_for_what_was_sent_only_if_something_was_read_since_the_commit(
    spark: Spark, uncommitted: int, started: int
) -> None:
    query = polled(spark, replace(spec(), settles_in_s=60.0, idle_events=1_000))
    spark.lag = uncommitted
    query.change_commits(Change.RARELY)
    assert len(spark.started) == started
    assert query.interval.is_long


WAITS = replace(spec(), idle_events=0, triggers=replace(TRIGGERS, idle_interval_s=3_000))
ALL_READ = Offsets({0: 0, 1: 0})


def test_query_that_has_committed_everything_waits_without_spark_and_keeps_its_guard(spark: Spark) -> None:
    query = polled(spark, WAITS)
    assert query.phase is Phase.REAL_TIME, "it has not committed"

    spark.committed = ALL_READ
    query.change_commits(Change.WAIT)
    query.poll()
    assert (query.phase, spark.started[-1].isActive, spark.guards) == (Phase.WAITING, False, 1)
    assert spark.noted == [ALL_READ], "records that are lost meanwhile are found"

    spark.lag = 1
    query.wake()
    query.poll()
    assert (query.phase, len(spark.started), query.restarts, spark.guards) == (Phase.REAL_TIME, 2, 0, 1)


def test_query_whose_source_has_events_just_when_it_is_to_wait_starts_again(spark: Spark) -> None:
    query = polled(spark, WAITS)
    spark.committed, spark.lag = ALL_READ, 1
    query.change_commits(Change.WAIT)
    assert (query.phase, len(spark.started)) == (Phase.REAL_TIME, 2)


def test_driver_that_starts_while_its_sources_are_quiet_starts_no_query(spark: Spark) -> None:
    spark.committed = ALL_READ
    query = polled(spark, WAITS)
    assert (query.phase, spark.started, spark.guards) == (Phase.WAITING, [], 1)
    query.stop()
    assert (query.phase, spark.guards) == (Phase.STOPPED, 0)

    assert polled(spark, replace(WAITS, idle_events=None)).phase is Phase.REAL_TIME, "its outputs would wait"
    spark.lag = 1
    assert polled(spark, WAITS).phase is Phase.REAL_TIME


def test_query_that_waits_passes_its_guard_and_takes_it_back(spark: Spark) -> None:
    spark.committed = ALL_READ
    query = polled(spark, WAITS)
    query.release()
    assert (query.phase, spark.guards) == (Phase.STARTING, 0)
    query.poll()
    assert (query.phase, spark.guards) == (Phase.WAITING, 1)


def test_query_that_fails_does_not_wait_before_it_has_recovered(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised_query, "FIRST_BACKOFF_S", 0.0)
    spark.committed, spark.lag = ALL_READ, 1
    query = polled(spark, WAITS)
    spark.lag = 0
    spark.end(ValueError("a task failed"))
    query.poll()
    query.poll()
    assert (query.phase, len(spark.started)) == (Phase.REAL_TIME, 2)


def test_query_that_waits_is_refused_when_its_topic_has_lost_records(spark: Spark) -> None:
    spark.committed = ALL_READ
    query = polled(spark, WAITS)
    spark.lost = "events/0 ends at 3 now"
    query.wake()
    query.poll()
    assert (query.phase, spark.started) == (Phase.REFUSED, [])
    assert "events/0 ends at 3 now" in query.last_error
