"""The replay of a check with DuckDB: the keys of the events, and the states that they fold to.

The tables: `events` (include/replay/event_relation.py), and those of include/replay/check/comparison.py.
"""

import zlib
from collections.abc import Sequence

import duckdb
import pyarrow as pa
from confluent_kafka import murmur2
from duckdb.func import PythonUDFType
from duckdb.sqltypes import DuckDBPyType

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.read_model import ReadModel
from include.position import SOURCE_OFFSET, Offsets
from include.quality.check import UncheckableError
from include.replay.check.comparison import below, packed
from include.replay.check.tables import KEY_PARTITION, DuckDbTables, one_row
from include.replay.check.target import OtherEngineError
from include.replay.event_relation import EVENTS
from include.replay.fold_sql import FoldSql, NotTranslatedError, unwritten

# A function that DuckDB lacks.
KEY_CRC = "key_crc"
# Number of keys with events in several partitions that the error names.
NAMED_KEYS = 5


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


def create_log_keys(tables: DuckDbTables, model: ReadModel, cuts: Sequence[Offsets], partitions: int) -> None:
    """Create `log_keys`: a row for each key of the events, with last_<i> and count_<i> of its events below each cut.

    Raises UncheckableError if a key of the read model has events in several source partitions.
    """
    of_cuts = "".join(
        f', max("{OFFSET}") FILTER ({below(cut)}) AS last_{i}, count(*) FILTER ({below(cut)}) AS count_{i}'
        for i, cut in enumerate(cuts)
    )
    query = f"""SELECT key, min("{PARTITION}") AS lowest_partition, max("{PARTITION}") AS partition,
               bool_and(is_source_key) AS is_source_key{of_cuts} FROM {EVENTS} GROUP BY key"""
    tables.create("log_keys", query, partitions)
    _require_one_partition(tables, model)


def create_ends(tables: DuckDbTables, model: ReadModel, rules: FoldSql) -> None:
    """Create `ends`; see `create_absences`."""
    expires = model.expires
    time = "NULL::BIGINT" if expires is None else f"epoch_us({rules.fields[expires.field]})"
    tables.create(
        "ends",
        f"""SELECT events.key AS key, position, bool_or(coalesce({rules.ended or "false"}, false)) AS has_ended,
               {time} AS item_time, false AS has_failed
        FROM {EVENTS} AS events LEFT JOIN (SELECT DISTINCT key, {SOURCE_OFFSET.name} AS position FROM stored) AS positions
        ON events.key = positions.key AND events."{OFFSET}" <= position
        GROUP BY ALL""",
    )


def create_replayed(tables: DuckDbTables, name: str, rules: FoldSql, positions: str) -> None:
    """Create `replayed`, or a table like it, for some positions."""
    record = ", ".join(f'{aggregate} AS "{name}"' for name, aggregate in rules.record.items())
    tables.create(
        name,
        f"""SELECT key, position, {packed(rules.record)} AS replayed FROM (
            SELECT events.key AS key, position, {record}
            FROM {EVENTS} AS events JOIN ({positions}) AS positions
            ON events.key = positions.key AND events."{OFFSET}" <= position
            GROUP BY ALL)""",
    )


def require_written(tables: DuckDbTables, name: str, model: ReadModel, revision: int) -> None:
    """Raise OtherEngineError if a replayed state cannot be written: Spark knows where its key may be absent for that reason."""
    condition = unwritten(model.state_schema_of(revision), "replayed")
    for (key,) in tables.rows(f"SELECT key FROM {name} WHERE {condition} LIMIT 1"):
        raise OtherEngineError(f"the state of {key!r} cannot be written")


def _require_one_partition(tables: DuckDbTables, model: ReadModel) -> None:
    mixed = "NOT is_source_key AND lowest_partition <> partition"
    mixed_keys, keys = one_row(tables, f"SELECT count(*) FILTER ({mixed}), count(*) FROM log_keys")
    if not mixed_keys:
        return
    named = tables.rows(
        f"""SELECT key, list_sort(list(DISTINCT "{PARTITION}")) FROM {EVENTS}
        WHERE key IN (SELECT key FROM log_keys WHERE {mixed} ORDER BY key LIMIT {NAMED_KEYS}) GROUP BY key ORDER BY key"""
    )
    raise UncheckableError.of_several_partitions(model.name, dict(named), mixed_keys, keys)


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
