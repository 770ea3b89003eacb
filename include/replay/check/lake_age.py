"""The age of the oldest event that the lake lacks."""

from contextlib import closing

import duckdb

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.read_model import KEY_COLUMN
from include.kafka.log_reading import age_beyond_s, log_consumer
from include.position import SOURCE_OFFSET, Offsets
from include.replay.check.comparison import below
from include.replay.check.stores import DeltaStore
from include.replay.check.target import CheckTarget
from include.replay.event_relation import EVENTS


def lake_lag_s(
    connection: duckdb.DuckDBPyConnection, target: CheckTarget, lake: DeltaStore, complete_up_to: Offsets
) -> float:
    """Return how long ago the oldest event that the lake lacks was appended.

    The tag gives an upper bound: it has the offsets that the stream had committed, which may trail the rows, because the stream commits at
    intervals and not when it is stopped. If that bound is too old, the rows are searched instead.
    """
    servers, topic = target.settings.kafka.bootstrap_servers, target.model.source_topic
    with closing(log_consumer(servers)) as consumer:
        at_most_s = age_beyond_s(consumer, topic, complete_up_to, target.cut)
        if at_most_s <= target.settings.quality.max_lake_age_s:
            return at_most_s
        missing = connection.execute(
            f"""SELECT "{PARTITION}", min("{OFFSET}") FROM {EVENTS} AS events
            LEFT JOIN {lake.table} AS stored ON stored."{KEY_COLUMN}" = events.key
            WHERE ({below(target.cut)}) AND NOT ({below(complete_up_to)})
              AND (stored.{SOURCE_OFFSET.name} IS NULL OR stored.{SOURCE_OFFSET.name} < "{OFFSET}")
            GROUP BY ALL"""
        ).fetchall()
        first = Offsets(dict(missing))
        return age_beyond_s(consumer, topic, first, Offsets({p: target.cut[p] for p in first}))
