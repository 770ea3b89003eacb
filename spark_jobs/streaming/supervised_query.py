"""Runs the query of one specification: starts it, monitors it, and restarts it from its checkpoint after a failure."""

import logging
import time
from contextlib import ExitStack

from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.errors import FoldlakeError, KafkaUnavailableError, ReadModelError, RegistryUnavailableError
from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID
from include.position import Offsets
from include.stream.query_reports import Phase
from spark_jobs.folding.schema_cache import learn_ids
from spark_jobs.runtime.checkpoint import remove_uncommitted
from spark_jobs.runtime.error_summary import error_summary
from spark_jobs.streaming.commits.batch_reader import BatchReader
from spark_jobs.streaming.commits.commit_interval import Change, CommitInterval
from spark_jobs.streaming.lag import CheckpointLag, LagWatch, SourceEnds
from spark_jobs.streaming.log_loss import CommitNotes, LogNotes
from spark_jobs.streaming.mode_choice import ModeChoice
from spark_jobs.streaming.query_spec import QuerySpec, StartPostponedError, StartRefusedError
from spark_jobs.streaming.query_start import start_batches, start_catch_up, start_real_time

LOG = logging.getLogger(__name__)

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 30.0
# A query that ran this long has recovered: the next failure starts with the first backoff again.
RECOVERED_AFTER_S = 60.0
# About two minutes of failures, longer than a broker's restart. Then the driver exits, and Airflow relaunches it.
MAX_FAILURES_IN_A_ROW = 8
# Interval for checking a refused query again: the missing fold may have been added.
REFUSED_RETRY_S = 5.0
# Interval for preparing a query again while Kafka or the schema registry is unavailable.
UNAVAILABLE_RETRY_S = 2.0


class QueryFailedError(FoldlakeError):
    """An essential query failed too often in a row."""


class SupervisedQuery:
    """A streaming query that restarts after failures. `poll` does all the work: call it about every second.

    is_essential: initially as in the specification; updated when a version becomes live or is replaced.
    checkpoint, lag: how far it is behind the source, as of the last start and now. batches: Spark's reports on its batches.
    """

    def __init__(
        self, spark: SparkSession, spec: QuerySpec, consumer: Consumer, ends: SourceEnds | None = None
    ) -> None:
        self.spec = spec
        self.is_essential = spec.is_essential
        self.phase = Phase.STARTING
        self.restarts = 0
        self.failures_in_a_row = 0
        self.last_error = ""
        self.checkpoint = CheckpointLag(spark, consumer, spec)
        self.batches = BatchReader(spec.name)
        self.interval = CommitInterval(spec)
        self._spark = spark
        self._query: StreamingQuery | None = None
        self._guard: ExitStack | None = None
        self._is_prepared = False
        self._started_with = spec.schemas.schema_ids
        self._started_s = 0.0
        self._not_before_s = 0.0
        self._failing_since_s: float | None = None
        self._notes = CommitNotes(LogNotes(spark, consumer, spec.endpoints), spec, self.checkpoint.committed)
        self._mode = ModeChoice(spec.triggers)
        self._ends = ends or SourceEnds(consumer)
        self.lag = LagWatch(consumer, self._ends, spec, self.checkpoint.committed)

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.spec.name

    @property
    def running_for_s(self) -> float:
        """How long ago the query was last started."""
        return time.monotonic() - self._started_s

    @property
    def newest_commit(self) -> Offsets:
        """The source offsets of the newest commit that is known."""
        return self.checkpoint.offsets.merge(self.batches.committed)

    @property
    def failing_for_s(self) -> float:
        """How long the query has failed again and again or been refused; 0 once it has recovered."""
        return 0.0 if self._failing_since_s is None else time.monotonic() - self._failing_since_s

    def poll(self) -> None:
        """Start the query if it is due and not running; if it has ended, handle that.

        Raises QueryFailedError when the query is essential and has failed too often in a row.
        """
        if self.phase in {Phase.STOPPED, Phase.WAITING}:
            return
        if self._query is None:
            if time.monotonic() >= self._not_before_s:
                self._try_start()
            return
        if self.running_for_s > RECOVERED_AFTER_S:
            self.failures_in_a_row = 0
            self._failing_since_s = None
        if not self._query.isActive:
            self.batches.read(self._query)
            error = self._query.exception()
            self._query = None
            if error is not None:
                self._recover(error)
                return
            LOG.info("query %s has reached the end of the topic as of its start", self.name)
            triggers = self.spec.triggers
            if triggers.stop_when_caught_up and self.events_behind() <= triggers.catch_up_threshold_events:
                self.stop()
            return
        self.batches.read_if_due(self._query)
        lag = self.lag.measure()
        if lag is not None and self._mode.must_change(self.phase, lag):
            LOG.info("query %s: %s from now on", self.name, self._mode.next_phase)
            self.pause()
        else:
            self._notes.take_if_due()

    def prepare(self) -> bool:
        """Prepare the query, once; return whether it is prepared. After a failure, `poll` tries again."""
        if self._is_prepared:
            return True
        try:
            self.spec.prepare()
        except StartRefusedError as refusal:
            self.refuse(str(refusal))
        except (KafkaUnavailableError, RegistryUnavailableError) as error:
            # The query itself has not failed: this is not counted, so it never ends the driver.
            self._retry_later(error, UNAVAILABLE_RETRY_S)
        except Exception as error:  # noqa: BLE001 - one specification's error must not stop the other queries
            self._back_off(error)
        else:
            self._is_prepared = True
        return self._is_prepared

    def stop(self) -> None:
        """Stop permanently and release the guard. The next run repeats the events that the checkpoint does not cover."""
        self.release()
        self.phase = Phase.STOPPED

    def release(self) -> None:
        """Stop and release the guard, until the next `poll`."""
        self.pause()
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        if self.phase is Phase.WAITING:
            self.phase = Phase.STARTING

    def pause(self) -> None:
        """Stop until the next `poll`, which starts the query again with the schema ids that are known then."""
        if self._query is not None:
            self._query.stop()
            self.batches.read(self._query)
            self._query = None
            self.phase = Phase.STARTING
            self._not_before_s = time.monotonic() + self.spec.settles_in_s

    def change_commits(self, change: Change) -> None:
        """Start again with another interval of commits, or wait for events; raises KafkaUnavailableError."""
        self.interval.change(change)
        if change is not Change.WAIT:
            LOG.info("query %s commits every %d s from now on", self.name, self.interval.seconds)
        self.pause()
        if self.events_behind() == 0:
            # It has read nothing since its last commit, so that nothing it has sent can still arrive.
            self._not_before_s = 0.0
        self.poll()

    def wake(self) -> None:
        """Start at the next `poll`: the source of the query, which waits, has changed."""
        self.interval.wake()
        self.phase = Phase.STARTING

    def refuse(self, reason: str, *, retry_after_s: float = REFUSED_RETRY_S) -> None:
        """Keep the query from starting for now: the first `poll` after `retry_after_s` checks again."""
        if self.phase is not Phase.REFUSED or reason != self.last_error:
            LOG.error("query %s is refused: %s", self.name, reason)
        self.phase = Phase.REFUSED
        self.last_error = reason
        self._failing_since_s = self._failing_since_s or time.monotonic()
        self._not_before_s = time.monotonic() + retry_after_s

    def events_behind(self) -> int:
        """Return the lag: the number of events between the checkpoint and the end of the source topic."""
        return self.checkpoint.measure()

    def _try_start(self) -> None:
        if not self.prepare():
            return
        try:
            self.spec.schemas.read_rejections()
            self._started_with = self.spec.schemas.schema_ids
            self._query, self.phase = self._start()
        except StartPostponedError as postponed:
            self._not_before_s = time.monotonic() + postponed.wait_s
            return
        except (StartRefusedError, ReadModelError) as refusal:
            # Another start would find the same error in the declaration: it must not end the driver.
            self.refuse(str(refusal))
            return
        except Exception as error:  # noqa: BLE001 - any error of Spark: back off and retry
            self._back_off(error)
            return
        self.last_error = ""
        LOG.info("query %s: %s", self.name, self.phase)
        if self.phase is Phase.WAITING:
            self.failures_in_a_row, self._failing_since_s = 0, None
            self._notes.take()
            return
        self.interval.may_wait = False
        self.batches.begin(self.interval.seconds if self.phase is Phase.REAL_TIME else 0)
        self._started_s = time.monotonic()
        self.lag.begin()

    def _start(self) -> tuple[StreamingQuery | None, Phase]:
        spec = self.spec
        self._enter_guard()
        if remove_uncommitted(self._spark, spec.endpoints.checkpoint):
            LOG.info("query %s restarts at the first event: it was killed before its first commit", self.name)
        self._notes.require_whole_logs()
        if spec.triggers.stop_when_caught_up:
            return start_catch_up(self._spark, spec, self._started_with), Phase.CATCHING_UP
        lag = self.events_behind()
        if self.interval.may_wait and self.checkpoint.is_committed and lag == 0:
            return None, Phase.WAITING
        if self._mode.next_phase is Phase.BATCHES:
            return start_batches(self._spark, spec, self._started_with), Phase.BATCHES
        if lag > spec.triggers.catch_up_threshold_events and not spec.triggers.real_time_only:
            LOG.info("query %s is %d events behind: catching up", self.name, lag)
            return start_catch_up(self._spark, spec, self._started_with), Phase.CATCHING_UP
        if self.checkpoint.offsets:
            self.interval.begin(lag, self._ends.events_per_s(spec.endpoints.source_topic))
        query = start_real_time(self._spark, spec, self._started_with, self.interval.seconds)
        return query, Phase.REAL_TIME

    def _enter_guard(self) -> None:
        if self._guard is None:
            with ExitStack() as entered:
                entered.enter_context(self.spec.guard())
                self._guard = entered.pop_all()

    def _recover(self, error: Exception) -> None:
        self.restarts += 1
        self.interval.reset()
        # In real-time mode the error is that of the first failed task, so its text does not always contain the cause.
        if UNKNOWN_SCHEMA_ID not in str(error) and self.phase is not Phase.REAL_TIME:
            self._back_off(error)
            return
        try:
            # Another query of the topic may have looked the ids up already.
            if self.spec.schemas.schema_ids == self._started_with:
                endpoints = self.spec.endpoints
                learn_ids(
                    self._spark,
                    self.spec.schemas,
                    str(error),
                    endpoints.kafka,
                    endpoints.source_topic,
                    endpoints.checkpoint,
                )
        except Exception as failure:  # noqa: BLE001 - registry or broker unavailable: retry later
            self._back_off(failure)
            return
        if self.spec.schemas.schema_ids != self._started_with:
            LOG.info("query %s restarts with newly found schema ids", self.name)
            self._not_before_s = time.monotonic() + self.spec.settles_in_s
        else:
            self._back_off(error)

    def _back_off(self, error: Exception) -> None:
        self.failures_in_a_row += 1
        if self.is_essential and self.failures_in_a_row > MAX_FAILURES_IN_A_ROW:
            self._fail(error)
            message = f"Query {self.name} failed {self.failures_in_a_row} times in a row, last with: {self.last_error}"
            raise QueryFailedError(message) from error
        doublings = min(self.failures_in_a_row - 1, MAX_FAILURES_IN_A_ROW)
        backoff_s = max(self.spec.settles_in_s, FIRST_BACKOFF_S * 2**doublings)
        self._retry_later(error, min(LONGEST_BACKOFF_S, backoff_s))

    def _fail(self, error: Exception) -> None:
        self.phase = Phase.FAILED
        self.last_error = error_summary(error)
        self._failing_since_s = self._failing_since_s or time.monotonic()

    def _retry_later(self, error: Exception, retry_after_s: float) -> None:
        self._fail(error)
        self._not_before_s = time.monotonic() + retry_after_s
        LOG.warning("query %s failed, retrying in %.0f s: %s", self.name, retry_after_s, self.last_error)
