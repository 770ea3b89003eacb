"""The specification of a streaming query: what it reads, computes and writes, and how it runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from pyspark.sql import DataFrame

from include.errors import FoldlakeError
from include.kafka.schema_ids import SchemaIds
from include.position import Offsets
from include.settings import KafkaConnection, StreamSettings
from include.stream.pace import PACES, Pace
from include.stream.slot_planning import SlotClaim, SlotRank
from spark_jobs.folding.schema_cache import KnownSchemas

# Spark refuses a shorter interval of real-time mode, and so does the setting (include/spark/stream_config.py).
SHORTEST_INTERVAL_MS = 1_000


class StartPostponedError(FoldlakeError):
    """A query must not start before `wait_s` seconds have passed."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"it starts in {wait_s:.0f} s")
        self.wait_s = wait_s


class StartRefusedError(FoldlakeError):
    """A query must not start for now; `./foldlake status` shows the message as the reason."""


@dataclass(frozen=True)
class QueryEndpoints:
    """The topics and the checkpoint of a query.

    partitions: number of partitions of the source topic. sink_partitions: of the sink topic; 0: the same number.
    """

    kafka: KafkaConnection
    source_topic: str
    sink_topic: str
    partitions: int
    checkpoint: str
    sink_partitions: int = 0


@dataclass(frozen=True)
class TriggerSettings:
    """When a query runs in batches, and when in real-time mode.

    catch_up_threshold_events: a query with a greater lag catches up in batches first, or goes over to batches.
    catch_up_batch_events: events per batch; bounds memory and determines how often progress is reported.
    real_time_interval_s: how often real-time mode commits its checkpoint.
    pace: how long the query collects events.
    min_batch_time_s: how long a query that has fallen behind in real time stays in batches at least.
    batch_interval_ms: how often a batch starts. idle_interval_s: how often a query with few events commits in real-time mode; one without events
    waits for some if this is longer than real_time_interval_s.
    batches_only: never enter real-time mode. real_time_only: catch up in real-time mode, too.
    stop_when_caught_up: never enter real-time mode; stop once the lag is at or below the threshold.
    """

    catch_up_threshold_events: int
    catch_up_batch_events: int
    real_time_interval_s: int
    pace: Pace = PACES["latency"]
    min_batch_time_s: float = 60.0
    batch_interval_ms: int = 1000
    idle_interval_s: int = 600
    batches_only: bool = False
    real_time_only: bool = False
    stop_when_caught_up: bool = False

    @classmethod
    def from_settings(cls, stream: StreamSettings) -> "TriggerSettings":
        """Return the trigger settings of the stream driver."""
        return cls(
            stream.catch_up_threshold_events,
            stream.catch_up_batch_events,
            stream.real_time_interval_s,
            PACES[stream.pace],
            stream.min_batch_time_s,
            stream.batch_interval_ms,
            stream.idle_interval_s,
        )


def _nothing_to_do() -> None:
    pass


@dataclass(frozen=True)
class QuerySpec:
    """A streaming query from one Kafka topic to another; `SupervisedQuery` runs it.

    name: unique in the driver; the query's name in the logs, in `./foldlake status` and in Spark.
    schemas: the schema ids of the source topic.
    records: maps the source's records to the sink's. Its input has the columns of Spark's Kafka source, its output those of
        the Kafka sink: `value` and optionally `key`, `partition`, `headers`. Called at each start with the schema ids known
        at that time. It must use native columns only, because real-time mode runs no Python functions.
    starts: where a query without a checkpoint starts to read, by source partition; empty: at the first record.
    is_essential: whether the driver exits after repeated failures of this query. Any other query is retried for as long as
        the driver runs.
    prepare: called before the first start until it succeeds, and every few seconds while the query is refused. Creates
        topics, registers schemas, and checks whether the query may start; raises StartRefusedError if it may not.
    guard: returns a context that is entered before the first start and exited when the query is stopped: the lock that keeps
        other writers off the checkpoint.
    lock: the file that the guard locks, if another driver may start the query as soon as it is free; None: only when this driver has ended.
    written: returns the source offsets after the newest records that the query's output contains, from which its lag is known in
        real-time mode; None if the output does not tell: such a query never goes over to batches.
    sink: options of the Kafka sink in every mode, beside those of the mode.
    settles_in_s: how long after its end what the query has sent may still arrive: it starts again only then.
    note: called about every minute while the query runs.
    rereads_after_loss: whether the query may start at the first event again when Kafka has lost records that it had read or
        written; otherwise it is refused.
    waits_for_others: whether the query starts only once the driver's other queries have caught up and settled.
    feeds_others: whether other queries read its output: it starts before those whose output only consumers read.
    has_watermark: whether the query forgets state by event time: a batch then reads all partitions up to their ends.
    shuffle_partitions: number of tasks after the shuffle of a query without a checkpoint; 0 for a query without a shuffle.
    idle_events: how many source events may wait for a commit while the query commits rarely, because few arrive; 0: it never does. In both
        cases, it stops while its source has no events. None: it does neither, because a restart would delay its outputs.
    real_time_source: options of the Kafka source in real-time mode that replace those of the pace.
    task_slots: the slots that the query may occupy in real-time mode, one for each task; 0: one for each source partition.
    slot_rank: priority when task slots are scarce: the lower rank first, then the lower number.
    """

    name: str
    endpoints: QueryEndpoints
    schemas: KnownSchemas
    records: Callable[[DataFrame, SchemaIds], DataFrame]
    triggers: TriggerSettings
    starts: Offsets = field(default_factory=Offsets)
    is_essential: bool = True
    prepare: Callable[[], None] = _nothing_to_do
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    lock: Path | None = None
    written: Callable[[], Offsets] | None = None
    sink: tuple[tuple[str, str], ...] = ()
    settles_in_s: float = 0.0
    note: Callable[[], None] = _nothing_to_do
    rereads_after_loss: bool = False
    waits_for_others: bool = False
    feeds_others: bool = False
    has_watermark: bool = False
    shuffle_partitions: int = 0
    idle_events: int | None = None
    real_time_source: tuple[tuple[str, str], ...] = ()
    task_slots: int = 0
    slot_rank: tuple[SlotRank, int] = (SlotRank.OTHER, 0)

    def commit_interval_ms(self, interval_s: int) -> int:
        """Return an interval, shortened by up to a tenth: otherwise, all queries would stop folding and commit at the same moment."""
        shortening = crc32(self.name.encode()) % 1000 / 10_000
        return max(SHORTEST_INTERVAL_MS, round(1000 * interval_s * (1 - shortening)))

    @property
    def slot_claim(self) -> SlotClaim:
        """The task slots that the query needs in real-time mode; none if it runs in batches only."""
        slots = 0 if self.triggers.batches_only else self.task_slots or self.endpoints.partitions
        return SlotClaim(slots, *self.slot_rank)
