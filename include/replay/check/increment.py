"""The increment of a check, in SQL that both engines understand: what verified records and the events since say about the log.

The tables: `verified` (verified_records.py); `events`, those since; `changed`, their keys; and `base`, the verified records of these keys.
"""

from collections.abc import Mapping, Sequence

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.position import EVENT_COUNT, SOURCE_OFFSET, SOURCE_PARTITION, Offsets
from include.quality.check import FullCheckNeededError
from include.replay.check.comparison import below, packed
from include.replay.check.tables import CheckTables, DuckDbTables, one_row
from include.replay.event_relation import EVENTS
from include.replay.fold_sql import FoldSql
from include.words import plural


def create_changed(tables: CheckTables) -> int:
    """Create `changed` and `base`; returns the number of changed keys."""
    tables.create("changed", f"SELECT DISTINCT key FROM {EVENTS}")
    tables.create("base", "SELECT * FROM verified WHERE key IN (SELECT key FROM changed)")
    return int(one_row(tables, "SELECT count(*) FROM changed")[0])


def create_changed_log_keys(
    tables: CheckTables, cuts: Sequence[Offsets], partitions: int, since: Offsets
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
    query = f"""SELECT key, lowest_partition, partition, is_source_key, earlier{of_cuts} FROM (
            SELECT events.key AS key, min(least("{PARTITION}", base_partition)) AS lowest_partition,
                   max("{PARTITION}") AS partition, bool_and(is_source_key) AS is_source_key, max(reached) AS reached,
                   coalesce(max(lowest_count) - count(*) FILTER ("{OFFSET}" <= lowest), 0) AS earlier{read}
            FROM {EVENTS} AS events LEFT JOIN (
                SELECT key, min({offset}) AS lowest, arg_min({count}, {offset}) AS lowest_count,
                       greatest(min({offset}), max({offset}) FILTER ({below(since, SOURCE_PARTITION.name, offset)})) AS reached,
                       max({SOURCE_PARTITION.name}) AS base_partition
                FROM base GROUP BY key) AS base ON base.key = events.key
            GROUP BY events.key) AS keys"""
    tables.create("log_keys", query, partitions)
    mixed, contradicted = one_row(
        tables,
        """SELECT count(*) FILTER (NOT is_source_key AND lowest_partition <> partition),
                  count(*) FILTER (earlier < 0) FROM log_keys""",
    )
    if mixed:
        raise FullCheckNeededError(f"events of {plural(mixed, 'key')} are in several source partitions")
    if contradicted:
        raise FullCheckNeededError(
            f"the log has fewer events of {plural(contradicted, 'key')} than were verified"
        )


def create_based(tables: CheckTables, positions: str) -> None:
    """Create `based`: for each of some positions, the offset of the newest verified record below it (key, position, folded_up_to).

    Raises FullCheckNeededError for a record that is older than the verified ones of its key, which must be replayed from the first event.
    """
    offset = SOURCE_OFFSET.name
    tables.create(
        "based",
        f"""SELECT positions.key AS key, position, max(base.{offset}) AS folded_up_to FROM ({positions}) AS positions
        LEFT JOIN base ON base.key = positions.key AND base.{offset} <= position GROUP BY ALL""",
    )
    (older,) = one_row(
        tables,
        "SELECT count(*) FROM based JOIN log_keys USING (key) WHERE folded_up_to IS NULL AND earlier > 0",
    )
    if older:
        raise FullCheckNeededError(f"newer versions of {plural(older, 'record')} were verified before")


def create_merged(tables: DuckDbTables, name: str, rules: FoldSql, merge: Mapping[str, str]) -> None:
    """Create `replayed`, or a table like it, with DuckDB: each verified record of `based`, merged with the events up to the position."""
    offset = SOURCE_OFFSET.name
    names = ", ".join(f'base."{name}" AS "{name}"' for name in rules.record)
    record = ", ".join(f'{sql} AS "{name}"' for name, sql in rules.record.items())
    tables.create(
        name,
        f"""SELECT key, position, {packed(merge, merge)} AS replayed FROM (
            SELECT based.key AS key, position, {names} FROM based JOIN base ON base.key = based.key AND base.{offset} = folded_up_to
            UNION ALL BY NAME
            SELECT events.key AS key, position, {record}
            FROM {EVENTS} AS events JOIN based
            ON events.key = based.key AND events."{OFFSET}" > coalesce(folded_up_to, -1) AND events."{OFFSET}" <= position
            GROUP BY ALL)
        GROUP BY key, position""",
    )
