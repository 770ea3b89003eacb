"""Compares each stored record with a replay of the log, in SQL: the fold of exactly the events at or below its position.

The tables: `events` (include/replay/event_relation.py), `stored` (place, key, and the fields of a state record), `replicas` (see `Replica`).
"""

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from confluent_kafka import murmur2
from duckdb.func import PythonUDFType
from duckdb.sqltypes import DuckDBPyType

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.read_model import ReadModel
from include.position import SOURCE_OFFSET, SOURCE_PARTITION, Offsets
from include.quality.check import UncheckableError
from include.replay.check.target import OtherEngineError
from include.replay.event_relation import EVENTS
from include.replay.fold_sql import FoldSql, NotTranslatedError, unwritten
from include.settings import StreamSettings

# Functions that DuckDB lacks.
KEY_PARTITION, KEY_CRC = "key_partition", "key_crc"
# The position of a key that no replica has: of all of its events.
ALL_EVENTS = 2**63 - 1
POSITIONS = f"""SELECT key, {SOURCE_OFFSET.name} AS position FROM stored
    UNION SELECT key, {ALL_EVENTS} FROM required ANTI JOIN stored USING (key)"""
# Number of keys with events in several partitions that the error names.
NAMED_KEYS = 5
MICROS_PER_S = 1_000_000


@dataclass(frozen=True)
class Replica:
    """A replica that must have every key, or every key of one changelog partition.

    store: its store's name. cut: source partition -> offset; the records must contain every event below it.
    key_partition: the changelog partition whose keys it has; None: all keys.
    since: in an incremental check, source partition -> offset; only keys with an event at or above it are compared.
    """

    name: str
    store: str
    cut: Offsets
    key_partition: int | None = None
    since: Offsets | None = None


def require_types(connection: duckdb.DuckDBPyConnection, rules: FoldSql) -> None:
    """Raise NotTranslatedError if a rule uses a value of a type for which DuckDB may compute it in another way than Spark.

    Some uses show only when an event is folded, which is an error, too.
    """
    rule = ", ".join((*rules.record.values(), f"bool_or({rules.ended or 'false'})"))
    try:
        # Of nulls with the types of the events.
        connection.execute(f"SELECT {rule} FROM (SELECT 1) LEFT JOIN {EVENTS} ON true")
    except duckdb.InvalidInputException as error:
        raise NotTranslatedError(str(error)) from error


def create_log_keys(
    connection: duckdb.DuckDBPyConnection, model: ReadModel, cuts: Sequence[Offsets], partitions: int
) -> None:
    """Create `log_keys`: a row for each key of the events, with last_<i> and count_<i> of its events below each cut.

    Raises UncheckableError if a key of the read model has events in several source partitions.
    """
    of_cuts = "".join(
        f', max("{OFFSET}") FILTER ({below(cut)}) AS last_{i}, count(*) FILTER ({below(cut)}) AS count_{i}'
        for i, cut in enumerate(cuts)
    )
    connection.execute(
        f"""CREATE OR REPLACE TABLE log_keys AS
        SELECT *, {KEY_PARTITION}(key, {partitions}) AS key_partition FROM (
            SELECT key, min("{PARTITION}") AS lowest_partition, max("{PARTITION}") AS partition,
                   bool_and(is_source_key) AS is_source_key{of_cuts}
            FROM {EVENTS} GROUP BY key)"""
    )
    _require_one_partition(connection, model)


def cuts_of(replicas: Iterable[Replica]) -> list[Offsets]:
    """Return the distinct offsets up to which, and from which on the replicas are compared."""
    found: list[Offsets] = []
    for replica in replicas:
        found += [cut for cut in (replica.cut, replica.since) if cut is not None and cut not in found]
    return found


def create_replicas(
    connection: duckdb.DuckDBPyConnection, replicas: Iterable[Replica], cuts: list[Offsets]
) -> None:
    """Create `replicas`: place, store, cut and since (indices of `cuts`), key_partition."""
    connection.execute(
        "CREATE TABLE replicas (place VARCHAR, store VARCHAR, cut INTEGER, since INTEGER, key_partition INTEGER)"
    )
    for one in replicas:
        since = None if one.since is None else cuts.index(one.since)
        row = [one.name, one.store, cuts.index(one.cut), since, one.key_partition]
        connection.execute("INSERT INTO replicas VALUES (?, ?, ?, ?, ?)", row)


def create_required(connection: duckdb.DuckDBPyConnection, cuts: Sequence[Offsets], sample: str) -> None:
    """Create the view `keys_of_replicas`, and `required`, those of its keys that must be there.

    `keys_of_replicas`: place, key, partition, required_offset and required_count (of the key's events below the cut; null if there are none), a
    row for each key of the log that belongs to a replica, or with an event since the replica was verified.

    sample: the condition on a key that is compared.
    """

    def of_cut(column: str, name: str) -> str:
        return f"CASE {column} {' '.join(f'WHEN {i} THEN {name}_{i}' for i in range(len(cuts)))} END"

    last, count, before = of_cut("cut", "last"), of_cut("cut", "count"), of_cut("since", "count")
    columns = f"place, key, partition, {last} AS required_offset, {count} AS required_count, since, {before} AS before"
    connection.execute(
        f"""CREATE OR REPLACE VIEW keys_of_replicas AS
        SELECT place, key, partition, required_offset, required_count FROM (
            SELECT {columns} FROM log_keys CROSS JOIN replicas WHERE replicas.key_partition IS NULL
            UNION ALL
            SELECT {columns} FROM log_keys JOIN replicas USING (key_partition))
        WHERE since IS NULL OR required_count > before"""
    )
    connection.execute(
        f"CREATE OR REPLACE TABLE required AS SELECT * FROM keys_of_replicas WHERE required_offset IS NOT NULL AND {sample}"
    )


def create_absences(
    connection: duckdb.DuckDBPyConnection, model: ReadModel, rules: FoldSql, stream: StreamSettings
) -> None:
    """Create `absences`: key, position, and whether a replica may lack, and must lack the key after its events up to the position.

    A row for each stored position, and one with a null position for the key's events beyond these; no rows if keys stay.

    A key that expires is in neither set for a while: the newest item of the store is not that of the log. The store has seen every item
    that is still there, and perhaps none of those that have ended.
    """
    if not model.items_leave:
        connection.execute(
            "CREATE OR REPLACE TABLE absences (key VARCHAR, position BIGINT, may_lack BOOLEAN, must_lack BOOLEAN)"
        )
        return
    expires = model.expires
    half = twice = 0
    time = "NULL::BIGINT"
    if expires is not None:
        after = expires.after_s(stream) * MICROS_PER_S
        half, twice = round(after / 2), round(after * 2)
        time = f"epoch_us({rules.fields[expires.field]})"
    connection.execute(
        f"""CREATE OR REPLACE TABLE absences AS
        SELECT key, position, has_ended OR coalesce(item_time < newest - {half}, false) AS may_lack,
               has_ended OR coalesce(item_time < newest_there - {twice}, false) AS must_lack
        FROM (SELECT *, max(item_time) OVER () AS newest, max(item_time) FILTER (NOT has_ended) OVER () AS newest_there
              FROM (SELECT events.key AS key, position, bool_or(coalesce({rules.ended or "false"}, false)) AS has_ended,
                           {time} AS item_time
                    FROM {EVENTS} AS events LEFT JOIN (SELECT DISTINCT key, {SOURCE_OFFSET.name} AS position FROM stored) AS positions
                    ON events.key = positions.key AND events."{OFFSET}" <= position
                    GROUP BY ALL))"""
    )
    # A key that is stored must be right, although it may be absent.
    connection.execute(
        """CREATE OR REPLACE TABLE required AS
        SELECT required.* FROM required
        LEFT JOIN (SELECT DISTINCT key, true AS is_absence FROM absences WHERE may_lack) USING (key)
        LEFT JOIN (SELECT DISTINCT place, key, true AS is_stored FROM stored) USING (place, key)
        WHERE is_absence IS NULL OR is_stored"""
    )


def late_places(connection: duckdb.DuckDBPyConnection, stores: Collection[str]) -> list[str]:
    """Return the replicas of some stores that lack a required event."""
    query = f"""SELECT DISTINCT place FROM required JOIN replicas USING (place) LEFT JOIN
        (SELECT place, key, max({SOURCE_OFFSET.name}) AS reached FROM stored GROUP BY ALL) USING (place, key)
        WHERE store IN (SELECT unnest(?)) AND (reached IS NULL OR reached < required_offset)"""
    return [place for (place,) in connection.execute(query, [list(stores)]).fetchall()]


def create_replayed(connection: duckdb.DuckDBPyConnection, rules: FoldSql) -> None:
    """Create `replayed`: key, position, and the fold of the key's events up to it, for each stored position, and for each key that no replica has."""
    record = ", ".join(f'{aggregate} AS "{name}"' for name, aggregate in rules.record.items())
    connection.execute(
        f"""CREATE OR REPLACE TABLE replayed AS
        SELECT key, position, struct_pack({_packed(rules)}) AS replayed FROM (
            SELECT events.key AS key, position, {record}
            FROM {EVENTS} AS events JOIN ({POSITIONS}) AS positions
            ON events.key = positions.key AND events."{OFFSET}" <= position
            GROUP BY ALL)"""
    )


def require_written(connection: duckdb.DuckDBPyConnection, model: ReadModel, revision: int) -> None:
    """Raise OtherEngineError if a replayed state cannot be written: Spark knows where its key may be absent for that reason."""
    condition = unwritten(model.state_schema_of(revision), "replayed")
    found = connection.execute(f"SELECT key FROM replayed WHERE {condition} LIMIT 1").fetchone()
    if found is not None:
        raise OtherEngineError(f"the state of {found[0]!r} cannot be written")


def create_comparison(connection: duckdb.DuckDBPyConnection, rules: FoldSql) -> None:
    """Create `comparison` of `stored`, `required`, `replayed` and `absences`: a row for each replica and key that is stored there or must be.

    Columns: place, key, partition, stored and replayed (structs of a record's fields; null if there is no such record), stored_offset,
    stored_count, required_offset, required_count (of the key's events below the replica's cut; null if there are none), copy (1 for a
    key's first record, 2 and so on for further ones in the same replica), and stored_has_ended (whether the replica must lack the record).
    """
    position = SOURCE_OFFSET.name
    connection.execute(
        f"""CREATE OR REPLACE TABLE comparison AS
        SELECT place, key, coalesce(partition, stored.{SOURCE_PARTITION.name}) AS partition, stored, replayed,
               stored.{position} AS stored_offset, stored.event_count AS stored_count,
               required_offset, required_count, copy, coalesce(must_lack, false) AS stored_has_ended
        FROM (SELECT place, key, struct_pack({_packed(rules)}) AS stored, {position} AS at_offset,
                     row_number() OVER (PARTITION BY place, key ORDER BY {position}) AS copy FROM stored)
        FULL JOIN required USING (place, key)
        LEFT JOIN replayed ON replayed.key = key AND replayed.position = at_offset
        LEFT JOIN absences ON absences.key = key AND absences.position = at_offset"""
    )


def _packed(rules: FoldSql) -> str:
    return ", ".join(f'"{name}" := "{name}"' for name in rules.record)


def below(cut: Offsets, partition: str = PARTITION, offset: str = OFFSET) -> str:
    """Return the condition that the event at these columns is below a cut."""
    ends = (f'("{partition}" = {number} AND "{offset}" < {end})' for number, end in sorted(cut.items()))
    return " OR ".join(ends) or "false"


def _require_one_partition(connection: duckdb.DuckDBPyConnection, model: ReadModel) -> None:
    mixed = "NOT is_source_key AND lowest_partition <> partition"
    counted = connection.execute(f"SELECT count(*) FILTER ({mixed}), count(*) FROM log_keys").fetchone()
    assert counted is not None  # noqa: S101 - an aggregate without groups has one row
    if not counted[0]:
        return
    named = connection.execute(
        f"""SELECT key, list_sort(list(DISTINCT "{PARTITION}")) FROM {EVENTS}
        WHERE key IN (SELECT key FROM log_keys WHERE {mixed} ORDER BY key LIMIT {NAMED_KEYS}) GROUP BY key ORDER BY key"""
    ).fetchall()
    raise UncheckableError.of_several_partitions(model.name, dict(named), *counted)


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Add `key_partition(key, partitions)`, as Kafka's Java client computes it, and `key_crc(key)`, its CRC-32."""
    kind, text, integer = PythonUDFType.ARROW, DuckDBPyType("VARCHAR"), DuckDBPyType("INTEGER")
    connection.create_function(KEY_PARTITION, _partitions, [text, integer], integer, type=kind)
    connection.create_function(KEY_CRC, _checksums, [text], DuckDBPyType("BIGINT"), type=kind)


def _partitions(keys: pa.ChunkedArray, partitions: pa.ChunkedArray) -> pa.Array:
    # A constant, repeated for each key.
    number = partitions[0].as_py() if len(partitions) else 1
    return pa.array([murmur2(key.encode(), number) for key in keys.to_pylist()], pa.int32())


def _checksums(keys: pa.ChunkedArray) -> pa.Array:
    return pa.array([zlib.crc32(key.encode()) for key in keys.to_pylist()], pa.int64())
