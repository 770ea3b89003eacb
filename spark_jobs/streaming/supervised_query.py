"""One streaming query over its life: started, watched, restarted on its checkpoint, taught a schema id that it stopped at."""

import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.errors import FoldlakeError
from spark_jobs.folding.decode import UNKNOWN_SCHEMA_ID
from spark_jobs.folding.schema_cache import KnownSchemas, headers_ahead

LOG = logging.getLogger(__name__)

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 30.0
# A query that ran this long had recovered: its next failure starts from the first backoff again.
RECOVERED_AFTER_S = 60.0
# About two minutes of failing: more than a broker's restart takes. Then the driver ends, and its supervisor decides.
MAX_FAILURES_IN_A_ROW = 8


class Phase(StrEnum):
    """What a query is doing."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    REAL_TIME = "real time"
    FAILED = "failed"  # waits for its next start
    REFUSED = "refused"  # will not be started by this driver
    STOPPED = "stopped"


class QueryFailedError(FoldlakeError):
    """A query failed too often in a row to go on by itself."""


@dataclass(frozen=True)
class QueryEndpoints:
    """Where a query reads, writes and keeps its progress; `partitions` are those of either topic."""

    bootstrap_servers: str
    source_topic: str
    sink_topic: str
    partitions: int
    checkpoint: str


class SupervisedQuery(ABC):
    """A streaming query that outlives its failures. `poll` does all the work: call it about every second.

    is_essential: whether the driver shall end where this query fails again and again. One that readers do not depend on is
        tried again and again instead: the others must go on.
    """

    def __init__(self, name: str, spark: SparkSession, place: QueryEndpoints, schemas: KnownSchemas) -> None:
        self.name = name
        self.phase = Phase.STARTING
        self.is_essential = True
        self.failures_in_a_row = 0
        self.restarts = 0
        self.last_error = ""
        self.committed_offsets: dict[int, int] = {}  # by source partition, as of the last start
        self._spark = spark
        self._place = place
        self._schemas = schemas
        self._query: StreamingQuery | None = None
        self._started_with = schemas.schema_ids
        self._started_s = 0.0
        self._not_before_s = 0.0

    @abstractmethod
    def _start(self) -> tuple[StreamingQuery, Phase]:
        """Start the query on its checkpoint."""

    def poll(self) -> None:
        """Start the query when it is not running and its time has come; look after it when it has ended.

        Raises QueryFailedError when it is essential and fails again and again.
        """
        if self.phase in (Phase.REFUSED, Phase.STOPPED):
            return
        if self._query is None:
            if time.monotonic() >= self._not_before_s:
                self._try_start()
        elif not self._query.isActive:
            error = self._query.exception()
            self._query = None
            if error is None:
                self._finished()
            else:
                self._recover(error)

    def _finished(self) -> None:
        """Take note that the query has come to its end; the next poll starts it again unless it is stopped."""
        LOG.info("query %s has read up to the end that it saw", self.name)

    def stop(self) -> None:
        """Stop for good; what the checkpoint does not cover is folded again by whoever continues it."""
        self.phase = Phase.STOPPED
        if self._query is not None:
            self._query.stop()
            self._query = None

    def refuse(self, why: str) -> None:
        """Never start in this driver."""
        LOG.error("query %s is refused: %s", self.name, why)
        self.phase = Phase.REFUSED
        self.last_error = why

    @property
    def source_topic(self) -> str:
        """The topic that it reads."""
        return self._place.source_topic

    def _try_start(self) -> None:
        self._started_with = self._schemas.schema_ids
        try:
            self._query, self.phase = self._start()
        except Exception as error:  # noqa: BLE001 - whatever Spark throws: wait and try again
            self._back_off(error)
            return
        self._started_s = time.monotonic()
        self.last_error = ""
        LOG.info("query %s: %s", self.name, self.phase)

    def _recover(self, error: Exception) -> None:
        if time.monotonic() - self._started_s > RECOVERED_AFTER_S:
            self.failures_in_a_row = 0
        self.restarts += 1
        # In real-time mode whichever task fails first names the error, so its text does not always tell the cause.
        if UNKNOWN_SCHEMA_ID not in str(error) and self.phase is not Phase.REAL_TIME:
            self._back_off(error)
            return
        place = self._place
        try:
            ahead = headers_ahead(self._spark, place.bootstrap_servers, place.source_topic, place.checkpoint)
            self._schemas.learn(ahead)
        except Exception as failure:  # noqa: BLE001 - registry or broker away: try again later
            self._back_off(failure)
            return
        if self._schemas.schema_ids != self._started_with:
            LOG.info("query %s goes on with the schema ids that it met", self.name)
        else:
            self._back_off(error)

    def _back_off(self, error: Exception) -> None:
        self.phase = Phase.FAILED
        self.failures_in_a_row += 1
        self.last_error = str(error).splitlines()[0][:500] if str(error) else repr(error)
        if self.is_essential and self.failures_in_a_row > MAX_FAILURES_IN_A_ROW:
            message = f"Query {self.name} failed {self.failures_in_a_row} times in a row, last with: {self.last_error}"
            raise QueryFailedError(message) from error
        doublings = min(self.failures_in_a_row - 1, MAX_FAILURES_IN_A_ROW)
        delay_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2**doublings)
        self._not_before_s = time.monotonic() + delay_s
        LOG.warning("query %s failed, next try in %.0f s: %s", self.name, delay_s, self.last_error)
