"""The replay of an incremental check, in SQL: verified records, merged with the fold of the events since.

The tables: `verified` (verified_records.py); `events`, those since; `changed`, their keys; and `base`, the verified records of these keys.
"""

from collections.abc import Mapping, Sequence

import duckdb

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.position import EVENT_COUNT, SOURCE_OFFSET, SOURCE_PARTITION, Offsets
from include.quality.check import FullCheckNeededError
from include.replay.check.comparison import KEY_PARTITION, POSITIONS, below
from include.replay.event_relation import EVENTS
from include.replay.fold_sql import FoldSql


def create_changed(connection: duckdb.DuckDBPyConnection) -> int:
    """Create `changed` and `base`; returns the number of changed keys."""
    connection.execute(f"CREATE OR REPLACE TABLE changed AS SELECT DISTINCT key FROM {EVENTS}")
    connection.execute(
        "CREATE OR REPLACE TABLE base AS SELECT * FROM verified WHERE key IN (SELECT key FROM changed)"
    )
    found = connection.execute("SELECT count(*) FROM changed").fetchone()
    assert found is not None  # noqa: S101 - an aggregate without groups has one row
    return int(found[0])


def create_changed_log_keys(
    connection: duckdb.DuckDBPyConnection, cuts: Sequence[Offsets], partitions: int, since: Offsets
) -> None:
    """Create `log_keys` with a row for each changed key, as `comparison.create_log_keys` does for all; and the column `earlier`, the number of its
    events before these.

    Raises FullCheckNeededError when the log does not continue what was verified.
    """
    offset, count = SOURCE_OFFSET.name, EVENT_COUNT.name
    read = "".join(
        f', max("{OFFSET}") FILTER ({below(cut)}) AS read_{i}, count(*) FILTER ({below(cut)}) AS new_{i}'
        for i, cut in enumerate(cuts)
    )
    # Of the events before, it is only known that every record contains those up to a row.
    of_cuts = "".join(
        f", greatest(read_{i}, CASE WHEN earlier > 0 THEN reached END) AS last_{i}, new_{i} + earlier AS count_{i}"
        for i in range(len(cuts))
    )
    connection.execute(
        f"""CREATE OR REPLACE TABLE log_keys AS
        SELECT key, lowest_partition, partition, is_source_key, earlier{of_cuts}, {KEY_PARTITION}(key, {partitions}) AS key_partition
        FROM (
            SELECT events.key AS key, min(least("{PARTITION}", base_partition)) AS lowest_partition,
                   max("{PARTITION}") AS partition, bool_and(is_source_key) AS is_source_key, any_value(reached) AS reached,
                   coalesce(any_value(lowest_count) - count(*) FILTER ("{OFFSET}" <= lowest), 0) AS earlier{read}
            FROM {EVENTS} AS events LEFT JOIN (
                SELECT key, min({offset}) AS lowest, arg_min({count}, {offset}) AS lowest_count,
                       greatest(min({offset}), max({offset}) FILTER ({below(since, SOURCE_PARTITION.name, offset)})) AS reached,
                       max({SOURCE_PARTITION.name}) AS base_partition
                FROM base GROUP BY key) AS base ON base.key = events.key
            GROUP BY events.key)"""
    )
    found = connection.execute(
        """SELECT count(*) FILTER (NOT is_source_key AND lowest_partition <> partition),
                  count(*) FILTER (earlier < 0) FROM log_keys"""
    ).fetchone()
    assert found is not None  # noqa: S101 - an aggregate without groups has one row
    if found[0]:
        raise FullCheckNeededError(f"{found[0]:,} keys have events in several source partitions")
    if found[1]:
        raise FullCheckNeededError(f"the log has fewer events of {found[1]:,} keys than were verified")


def create_merged(connection: duckdb.DuckDBPyConnection, rules: FoldSql, merge: Mapping[str, str]) -> None:
    """Create `replayed`: for each stored position, the newest verified record below it, merged with the events up to it.

    Raises FullCheckNeededError for a record that is older than the verified ones of its key, which must be replayed from the first event.
    """
    offset = SOURCE_OFFSET.name
    names = ", ".join(f'"{name}"' for name in rules.record)
    packed = ", ".join(f'"{name}" := {sql}' for name, sql in merge.items())
    record = ", ".join(f'{sql} AS "{name}"' for name, sql in rules.record.items())
    connection.execute(
        f"""CREATE OR REPLACE TABLE based AS
        SELECT positions.key AS asked, position, base.* FROM ({POSITIONS}) AS positions
        ASOF LEFT JOIN base ON base.key = positions.key AND base.{offset} <= position"""
    )
    older = connection.execute(
        "SELECT count(*) FROM based JOIN log_keys ON log_keys.key = asked WHERE based.key IS NULL AND earlier > 0"
    ).fetchone()
    if older and older[0]:
        raise FullCheckNeededError(f"{older[0]:,} records are older than they were when they were verified")
    connection.execute(
        f"""CREATE OR REPLACE TABLE replayed AS
        SELECT key, position, struct_pack({packed}) AS replayed FROM (
            SELECT asked AS key, position, {names} FROM based WHERE key IS NOT NULL
            UNION ALL BY NAME
            SELECT events.key AS key, position, {record}
            FROM {EVENTS} AS events JOIN (SELECT asked, position, {offset} AS folded_up_to FROM based) AS based
            ON events.key = asked AND events."{OFFSET}" > coalesce(folded_up_to, -1) AND events."{OFFSET}" <= position
            GROUP BY ALL)
        GROUP BY key, position"""
    )
