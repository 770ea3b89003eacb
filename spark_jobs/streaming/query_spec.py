"""A streaming query as data: what it reads, computes and writes, and how it is run."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pyspark.sql import DataFrame

from include.errors import FoldlakeError
from include.settings import StreamSettings
from include.stream.slot_planning import SlotClaim, SlotRank
from spark_jobs.folding.decode import SchemaIds
from spark_jobs.folding.schema_cache import KnownSchemas


class StartRefusedError(FoldlakeError):
    """A query must not start for now; the message is the reason that `./foldlake status` shows."""


@dataclass(frozen=True)
class QueryEndpoints:
    """The topics and the checkpoint of a query; `partitions` is the number of partitions of the source topic."""

    bootstrap_servers: str
    source_topic: str
    sink_topic: str
    partitions: int
    checkpoint: str


@dataclass(frozen=True)
class TriggerSettings:
    """When a query reads in batches, and when in real-time mode.

    catch_up_threshold_events: with a greater lag than this, a query starts by catching up in batches.
    catch_up_batch_events: events in one such batch; bounds memory and sets how often progress is reported.
    real_time_interval_s: how often real-time mode commits its checkpoint.
    stop_when_caught_up: never enter real-time mode; stop once the lag is not above the threshold.
    """

    catch_up_threshold_events: int
    catch_up_batch_events: int
    real_time_interval_s: int
    stop_when_caught_up: bool = False

    @classmethod
    def from_settings(cls, stream: StreamSettings) -> "TriggerSettings":
        """Return the trigger settings of the stream driver."""
        return cls(
            stream.catch_up_threshold_events, stream.catch_up_batch_events, stream.real_time_interval_s
        )


def _nothing_to_prepare() -> None:
    pass


@dataclass(frozen=True)
class QuerySpec:
    """A streaming query from one Kafka topic to another; `SupervisedQuery` runs it.

    name: unique in the driver; the query's name in the logs, in `./foldlake status` and in Spark.
    schemas: the schema ids of the source topic.
    records: returns the sink's records for the source's. Its input has the columns of Spark's Kafka source, its output those
        of the Kafka sink: `value`, and where wanted `key`, `partition`, `headers`. Called at each start, with the schema ids
        that are known by then. Columns only: real-time mode runs no Python functions.
    is_essential: whether the driver ends when this query fails again and again. One that readers do not depend on is retried
        for as long as the driver runs.
    prepare: called before the first start until it succeeds, and every few seconds while the query is refused: creates
        topics, registers schemas, checks whether the query may start. Raises StartRefusedError where it may not.
    guard: returns a context that is entered before the first start and left when the query is stopped: the lock that keeps
        other writers off the checkpoint.
    waits_for_others: start only once no other query of the driver is catching up.
    shuffle_partitions: tasks behind the query's shuffle; 0 for a query without one.
    slot_rank: who gets task slots first where there are too few: the lower rank, then the lower number.
    """

    name: str
    endpoints: QueryEndpoints
    schemas: KnownSchemas
    records: Callable[[DataFrame, SchemaIds], DataFrame]
    triggers: TriggerSettings
    is_essential: bool = True
    prepare: Callable[[], None] = _nothing_to_prepare
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    waits_for_others: bool = False
    shuffle_partitions: int = 0
    slot_rank: tuple[SlotRank, int] = (SlotRank.OTHER, 0)

    @property
    def slot_claim(self) -> SlotClaim:
        """The task slots that the query holds in real-time mode: one for each task."""
        return SlotClaim(self.endpoints.partitions + self.shuffle_partitions, *self.slot_rank)
