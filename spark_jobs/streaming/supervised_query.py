"""Runs one query specification: starts its query, watches it, and restarts it from its checkpoint after a failure."""

import logging
import time
from contextlib import ExitStack
from enum import StrEnum

from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.kafka.log_reading import end_offsets
from include.position import Offsets
from spark_jobs.folding.decode import UNKNOWN_SCHEMA_ID
from spark_jobs.folding.schema_cache import headers_ahead
from spark_jobs.runtime.checkpoint import committed_offsets, remove_uncommitted
from spark_jobs.streaming.query_spec import QuerySpec, StartRefusedError
from spark_jobs.streaming.query_start import start_catch_up, start_real_time

LOG = logging.getLogger(__name__)

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 30.0
# A query that ran this long had recovered: its next failure starts from the first backoff again.
RECOVERED_AFTER_S = 60.0
# About two minutes of failing: more than a broker's restart takes. Then the driver ends, and Airflow decides.
MAX_FAILURES_IN_A_ROW = 8
# How often a refused query is checked again: the missing fold may have been added.
REFUSED_RETRY_S = 5.0
# How often a query is prepared again while Kafka or the schema registry is unavailable.
UNAVAILABLE_RETRY_S = 2.0


class Phase(StrEnum):
    """What a query is doing."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    REAL_TIME = "real time"
    FAILED = "failed"  # waiting for its next start
    REFUSED = "refused"  # must not start for now; the last error is the reason
    STOPPED = "stopped"


class QueryFailedError(FoldlakeError):
    """An essential query failed too often in a row."""


class SupervisedQuery:
    """A streaming query that survives its failures. `poll` does all the work: call it about every second.

    is_essential: as in the specification at first; the driver changes it when a version becomes live, or ceases to be.
    committed_offsets: up to where the checkpoint covers the source; as of the last start.
    """

    def __init__(self, spark: SparkSession, spec: QuerySpec, consumer: Consumer) -> None:
        self.spec = spec
        self.is_essential = spec.is_essential
        self.phase = Phase.STARTING
        self.restarts = 0
        self.failures_in_a_row = 0
        self.last_error = ""
        self.committed_offsets = Offsets()
        self._spark = spark
        self._consumer = consumer
        self._query: StreamingQuery | None = None
        self._guard: ExitStack | None = None
        self._is_prepared = False
        self._started_with = spec.schemas.schema_ids
        self._started_s = 0.0
        self._not_before_s = 0.0

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.spec.name

    def poll(self) -> None:
        """Start the query if it is due and not running; handle its end if it has ended.

        Raises QueryFailedError when the query is essential and has failed too often in a row.
        """
        if self.phase is Phase.STOPPED:
            return
        if self._query is None:
            if time.monotonic() >= self._not_before_s:
                self._try_start()
        elif not self._query.isActive:
            error = self._query.exception()
            self._query = None
            if error is None:
                self._handle_end_of_input()
            else:
                self._recover(error)

    def stop(self) -> None:
        """Stop for good and release the guard. The next run repeats what the checkpoint does not cover."""
        self.phase = Phase.STOPPED
        if self._query is not None:
            self._query.stop()
            self._query = None
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def refuse(self, reason: str, *, retry_after_s: float = REFUSED_RETRY_S) -> None:
        """Do not start for now: the next `poll` after `retry_after_s` checks again."""
        if self.phase is not Phase.REFUSED or reason != self.last_error:
            LOG.error("query %s is refused: %s", self.name, reason)
        self.phase = Phase.REFUSED
        self.last_error = reason
        self._not_before_s = time.monotonic() + retry_after_s

    def events_behind(self) -> int:
        """Return the lag: how many events lie between the checkpoint and the end of the source topic."""
        endpoints = self.spec.endpoints
        ends = Offsets.of_ends(end_offsets(self._consumer, endpoints.source_topic, endpoints.partitions))
        self.committed_offsets = committed_offsets(self._spark, endpoints.checkpoint, endpoints.source_topic)
        return self.committed_offsets.events_until(ends)

    def _try_start(self) -> None:
        if not self._is_prepared and not self._prepare():
            return
        self._started_with = self.spec.schemas.schema_ids
        try:
            self._query, self.phase = self._start()
        except Exception as error:  # noqa: BLE001 - any error of Spark's: wait and try again
            self._back_off(error)
            return
        self._started_s = time.monotonic()
        self.last_error = ""
        LOG.info("query %s: %s", self.name, self.phase)

    def _prepare(self) -> bool:
        try:
            self.spec.prepare()
        except StartRefusedError as refusal:
            self.refuse(str(refusal))
        except (KafkaUnavailableError, RegistryUnavailableError) as error:
            # Not the query's failure: it is not counted, so an essential query does not end the driver.
            self._retry_later(error, UNAVAILABLE_RETRY_S)
        except Exception as error:  # noqa: BLE001 - one specification's error must not stop the other queries
            self._back_off(error)
        else:
            self._is_prepared = True
        return self._is_prepared

    def _start(self) -> tuple[StreamingQuery, Phase]:
        spec = self.spec
        self._enter_guard()
        if remove_uncommitted(self._spark, spec.endpoints.checkpoint):
            LOG.info("query %s starts at the first event: it was killed before its first commit", self.name)
        if spec.triggers.stop_when_caught_up:
            return start_catch_up(self._spark, spec, self._started_with), Phase.CATCHING_UP
        behind = self.events_behind()
        if behind > spec.triggers.catch_up_threshold_events:
            LOG.info("query %s is %d events behind: catching up", self.name, behind)
            return start_catch_up(self._spark, spec, self._started_with), Phase.CATCHING_UP
        return start_real_time(self._spark, spec, self._started_with), Phase.REAL_TIME

    def _enter_guard(self) -> None:
        if self._guard is None:
            with ExitStack() as entered:
                entered.enter_context(self.spec.guard())
                self._guard = entered.pop_all()

    def _handle_end_of_input(self) -> None:
        LOG.info("query %s has read up to the end of the topic as of its start", self.name)
        triggers = self.spec.triggers
        if triggers.stop_when_caught_up and self.events_behind() <= triggers.catch_up_threshold_events:
            self.stop()

    def _recover(self, error: Exception) -> None:
        if time.monotonic() - self._started_s > RECOVERED_AFTER_S:
            self.failures_in_a_row = 0
        self.restarts += 1
        # In real-time mode the first task to fail names the error, so its text does not always show the cause.
        if UNKNOWN_SCHEMA_ID not in str(error) and self.phase is not Phase.REAL_TIME:
            self._back_off(error)
            return
        endpoints = self.spec.endpoints
        try:
            ahead = headers_ahead(
                self._spark, endpoints.bootstrap_servers, endpoints.source_topic, endpoints.checkpoint
            )
            self.spec.schemas.learn(ahead)
        except Exception as failure:  # noqa: BLE001 - registry or broker unavailable: try again later
            self._back_off(failure)
            return
        if self.spec.schemas.schema_ids != self._started_with:
            LOG.info("query %s restarts with the schema ids that are new to it", self.name)
        else:
            self._back_off(error)

    def _back_off(self, error: Exception) -> None:
        self.failures_in_a_row += 1
        if self.is_essential and self.failures_in_a_row > MAX_FAILURES_IN_A_ROW:
            self._fail(error)
            message = f"Query {self.name} failed {self.failures_in_a_row} times in a row, last with: {self.last_error}"
            raise QueryFailedError(message) from error
        doublings = min(self.failures_in_a_row - 1, MAX_FAILURES_IN_A_ROW)
        self._retry_later(error, min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2**doublings))

    def _fail(self, error: Exception) -> None:
        self.phase = Phase.FAILED
        self.last_error = str(error).splitlines()[0][:500] if str(error) else repr(error)

    def _retry_later(self, error: Exception, retry_after_s: float) -> None:
        self._fail(error)
        self._not_before_s = time.monotonic() + retry_after_s
        LOG.warning("query %s failed, next try in %.0f s: %s", self.name, retry_after_s, self.last_error)
