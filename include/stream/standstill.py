"""Whether the folds of a version stand still: events wait on the source, and none is folded.

Dead letters, and records of event types that the version does not fold, never appear in a changelog. The dead-letter topic and
the offsets that the query commits say how far the source has been read nevertheless; in real-time mode, a query commits at the
end of each interval only.
"""

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.kafka.dead_letters import newest_dead_letters
from include.kafka.topics import dead_letter_topic, partition_count
from include.position import Offsets
from include.stream.phase import FOLDING
from include.stream.query_reports import QueryReport

# Folds that are at work fold an event within milliseconds, a batch of a catch-up within seconds.
STANDSTILL_S = 5.0
# The time that the commit at the end of an interval can take.
COMMIT_S = 60.0


def is_stalled(waiting_s: float, query: QueryReport | None, real_time_interval_s: float) -> bool:
    """Return whether the folds stand still when events have waited, and none was folded, for `waiting_s` seconds.

    A query that the driver reports as folding may have read only records that it does not fold: it stands still only when its
    next commit does not appear either.
    """
    is_folding = query is not None and query.is_fresh and query.phase in FOLDING
    return waiting_s > (real_time_interval_s + COMMIT_S if is_folding else STANDSTILL_S)


def read_offsets(
    admin: AdminClient, consumer: Consumer, source_topic: str, query: QueryReport | None
) -> Offsets:
    """Return how far the source has been read according to the query's last commit and the newest dead letters.

    Raises KafkaUnavailableError.
    """
    committed = Offsets() if query is None else Offsets.from_json(query.last_batch.end_offsets)
    partitions = partition_count(admin, dead_letter_topic(source_topic)) or 0
    return committed.merge(newest_dead_letters(consumer, source_topic, partitions))
