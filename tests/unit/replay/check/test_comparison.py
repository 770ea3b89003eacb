"""The comparison in SQL, over tables of a few events and records: what each replica must have, and which records differ."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from include.position import Offsets
from include.quality.check import FullCheckNeededError, UncheckableError
from include.read_models.balance.model import READ_MODEL as BALANCE
from include.replay.check.comparison import (
    ALL_EVENTS,
    LACKING_POSITIONS,
    POSITIONS,
    create_comparison,
    create_late,
    create_no_absences,
    create_replicas,
    create_required,
    cuts_of,
)
from include.replay.check.increment import (
    create_based,
    create_changed,
    create_changed_log_keys,
    create_merged,
)
from include.replay.check.log_replay import (
    add_functions,
    create_log_keys,
    create_replayed,
    require_types,
)
from include.replay.check.readings import PLACE, Replica
from include.replay.check.tables import DuckDbTables
from include.replay.columns import event_struct
from include.replay.event_relation import EventRelation
from include.replay.fold_sql import NotTranslatedError, fold_sql, merge_sql
from include.replay.log_events import event_schema

RULES = fold_sql(BALANCE, 1)
TIME = datetime(2026, 1, 1, tzinfo=UTC)
RECORD = ("key", *RULES.record)
NOTHING_REQUIRED = "CREATE TABLE required (place VARCHAR, key VARCHAR)"
LAKE = Replica("lake", "lake", Offsets({0: 3}))


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        found.execute("SET TimeZone = 'UTC'")
        add_functions(found)
        yield found


def append(connection: duckdb.DuckDBPyConnection, *events: tuple[str, int, int, str]) -> None:
    """Append events: key, partition, offset, amount."""
    relation, schema = EventRelation(BALANCE, RULES), event_schema(BALANCE)
    if not connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'events'").fetchone()[
        0
    ]:  # type: ignore[index]  # an aggregate has a row
        relation.create(connection, schema)
    rows = [
        {
            "record:key": key,
            "record:partition": partition,
            "record:offset": offset,
            "record:timestamp": TIME,
            "record:event_type": "FundsAdded",
            "event:FundsAdded": {
                "id": f"{partition}-{offset}",
                "occurredOn": TIME,
                "customerId": key,
                "amount": Decimal(amount),
            },
        }
        for key, partition, offset, amount in events
    ]
    if rows:
        relation.append(connection, [pa.RecordBatch.from_pylist(rows, schema=schema)])


def store(connection: duckdb.DuckDBPyConnection, name: str, *rows: tuple[Any, ...]) -> None:
    """Create a table of records; the first column of `stored` is the replica."""
    place = [(PLACE, pa.string())] if name == "stored" else []
    fields = event_struct(BALANCE.state_schema_of(1))
    schema = pa.schema([*place, ("key", pa.string()), *fields])
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    connection.register("rows", table)
    connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM rows")  # noqa: S608 - a name of these tests


def record(key: str, amount: str, count: int, offset: int, partition: int = 0) -> tuple[Any, ...]:
    return (key, Decimal(amount), count, partition, offset, TIME)


def compared(connection: duckdb.DuckDBPyConnection, *replicas: Replica) -> dict[tuple[str, str], Any]:
    """Return (place, key) -> stored amount, replayed amount, required offset."""
    tables, cuts = DuckDbTables(connection), cuts_of(replicas)
    create_log_keys(tables, BALANCE, cuts, 2)
    create_replicas(tables, replicas, cuts)
    create_required(tables, cuts, "true")
    create_no_absences(tables)
    create_replayed(tables, "replayed", RULES, POSITIONS)
    create_comparison(tables, RULES.record)
    query = "SELECT place, key, stored.amount, replayed.amount, required_offset FROM comparison"
    return {(place, key): tuple(rest) for place, key, *rest in connection.execute(query).fetchall()}


def test_each_record_is_replayed_up_to_its_own_position(connection: duckdb.DuckDBPyConnection) -> None:
    append(connection, ("a", 0, 0, "1"), ("a", 0, 1, "2"), ("a", 0, 2, "4"))
    other = Replica("other", "nodes", Offsets({0: 3}))
    store(connection, "stored", ("lake", *record("a", "3", 2, 1)), ("other", *record("a", "7", 3, 2)))

    found = compared(connection, LAKE, other)

    assert found == {("lake", "a"): (3, 3, 2), ("other", "a"): (7, 7, 2)}
    assert create_late(DuckDbTables(connection), ["lake", "nodes"]) == 1
    assert connection.execute("SELECT place, key FROM late").fetchall() == [("lake", "a")]
    assert create_late(DuckDbTables(connection), ["nodes"]) == 0


def test_a_key_below_the_cut_must_be_stored_and_a_later_one_need_not(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    append(connection, ("missing", 0, 0, "1"), ("later", 0, 3, "2"))
    store(connection, "stored", ("lake", *record("extra", "5", 1, 2)))

    found = compared(connection, LAKE)

    assert found == {("lake", "missing"): (None, None, 0), ("lake", "extra"): (5, None, None)}
    whole = connection.execute("SELECT replayed.amount FROM replayed WHERE key = 'missing'").fetchall()
    assert whole == [(Decimal(1),)]


def test_a_key_that_one_replica_lacks_is_replayed_up_to_where_it_must_be_there(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    append(connection, ("a", 0, 0, "1"), ("a", 0, 1, "2"), ("a", 0, 3, "4"))
    store(connection, "stored", ("other", *record("a", "1", 1, 0)))

    compared(connection, LAKE, Replica("other", "nodes", Offsets({0: 1})))

    positions = connection.execute(f"SELECT * FROM ({LACKING_POSITIONS}) ORDER BY ALL").fetchall()  # noqa: S608
    assert positions == [("a", 1), ("a", ALL_EVENTS)]


def test_a_replica_of_a_partition_must_have_its_keys_only(connection: duckdb.DuckDBPyConnection) -> None:
    append(connection, *((f"key {n}", 0, n, "1") for n in range(3)))
    store(connection, "stored")
    cut = Offsets({0: 3})

    found = compared(connection, *(Replica(f"part {n}", "nodes", cut, n) for n in range(2)))

    partitions = dict(connection.execute("SELECT key, key_partition FROM log_keys").fetchall())
    assert set(found) == {(f"part {partition}", key) for key, partition in partitions.items()}


def test_a_key_in_two_partitions_cannot_be_checked(connection: duckdb.DuckDBPyConnection) -> None:
    append(connection, ("a", 0, 0, "1"), ("b", 1, 0, "1"))
    connection.execute("UPDATE events SET key = 'both', is_source_key = false")

    with pytest.raises(UncheckableError, match="'both' in partitions 0, 1"):
        create_log_keys(DuckDbTables(connection), BALANCE, [], 2)


def test_a_rule_over_a_value_of_another_type_is_refused_before_events_are_read(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    append(connection)
    require_types(connection, RULES)

    for text in ("max(CAST(amount AS BIGINT))", "max(year(event_type))"):
        refused = fold_sql(replace(BALANCE, folds={1: {"amount": text}}), 1)
        with pytest.raises(NotTranslatedError, match="may have another result in DuckDB"):
            require_types(connection, refused)


def test_verified_records_are_merged_with_the_events_since(connection: duckdb.DuckDBPyConnection) -> None:
    since, cut = Offsets({0: 2}), Offsets({0: 4})
    append(connection, ("a", 0, 2, "4"), ("a", 0, 3, "8"), ("new", 0, 4, "1"))
    store(connection, "verified", record("a", "3", 2, 1), record("unchanged", "9", 1, 0))
    rows = [record("a", "7", 3, 2), record("a", "15", 4, 3), record("new", "1", 1, 4)]
    store(connection, "stored", *(("lake", *row) for row in rows))

    tables = DuckDbTables(connection)
    changed = create_changed(tables)
    create_changed_log_keys(tables, [cut, since], 2, since)
    connection.execute(NOTHING_REQUIRED)
    create_based(tables, POSITIONS)
    create_merged(tables, "replayed", RULES, merge_sql(BALANCE, 1) or {})

    assert changed == 2
    replayed = connection.execute(
        "SELECT key, replayed.amount, replayed.event_count FROM replayed ORDER BY ALL"
    ).fetchall()
    assert replayed == [("a", 7, 3), ("a", 15, 4), ("new", 1, 1)]
    numbers = connection.execute("SELECT key, last_0, count_0, count_1 FROM log_keys ORDER BY key").fetchall()
    assert numbers == [("a", 3, 4, 2), ("new", None, 0, 0)]


@pytest.mark.parametrize(
    ("events", "stored", "reason"),
    [
        ([("a", 0, 2, "4")], record("a", "1", 1, 0), "newer versions of 1 record were"),
        ([("a", 0, 1, "2"), ("a", 0, 0, "1"), ("a", 0, 2, "2")], record("a", "9", 3, 2), "fewer events"),
    ],
)
def test_a_log_that_does_not_continue_what_was_verified_is_checked_in_full(
    connection: duckdb.DuckDBPyConnection,
    events: list[tuple[str, int, int, str]],
    stored: tuple[Any, ...],
    reason: str,
) -> None:
    append(connection, *events)
    verified = record("a", "3", 2, 1) if "older" in reason else record("a", "3", 1, 1)
    store(connection, "verified", verified)
    store(connection, "stored", ("lake", *stored))
    tables = DuckDbTables(connection)
    create_changed(tables)

    def replay() -> None:
        create_changed_log_keys(tables, [Offsets({0: 3})], 2, Offsets({0: 2}))
        connection.execute(NOTHING_REQUIRED)
        create_based(tables, POSITIONS)

    with pytest.raises(FullCheckNeededError, match=reason):
        replay()
