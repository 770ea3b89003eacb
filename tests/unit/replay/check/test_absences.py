"""The keys that a replica may lack and must lack, over tables of a few events and records."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from include.declarations.expiry import Expiry
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField
from include.read_models.balance.model import READ_MODEL as BALANCE
from include.replay.check.comparison import create_absences, create_no_absences, drop_absences
from include.replay.check.log_replay import create_ends
from include.replay.check.readings import PLACE
from include.replay.check.tables import DuckDbTables
from include.replay.fold_sql import fold_sql
from include.settings import Settings

STREAM = Settings().stream
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ENDING = replace(
    BALANCE,
    state=(StateField("last_on", TIMESTAMP_MILLIS),),
    folds={1: {"last_on": "max(occurredOn)"}},
    ended="event_type = 'FundsWithdrawn'",
)
EXPIRING = replace(ENDING, ended=None, expires=Expiry("occurredOn", "last_on", timedelta(hours=6)))
ALLOWED, REQUIRED = (True, False), (True, True)
STAYS = (False, False)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        found.execute("SET TimeZone = 'UTC'")
        found.execute(
            f"""CREATE TABLE events (key VARCHAR, "record:offset" BIGINT, event_type VARCHAR, "occurredOn" TIMESTAMPTZ);
            CREATE TABLE stored ("{PLACE}" VARCHAR, key VARCHAR, source_offset BIGINT);
            CREATE TABLE required (place VARCHAR, key VARCHAR, partition INTEGER, required_offset BIGINT, required_count BIGINT)"""
        )
        yield found


def absences(
    connection: duckdb.DuckDBPyConnection, model: ReadModel, *events: tuple[str, int, str, float]
) -> dict[tuple[str, int | None], tuple[bool, bool]]:
    """Return (key, position) -> whether a replica may lack, and must lack it. events: key, offset, type, hours after the first."""
    for key, offset, kind, hours in events:
        row = [key, offset, kind, BEGIN + timedelta(hours=hours)]
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
        connection.execute(
            "INSERT INTO required SELECT 'lake', ?, 0, 0, 0 WHERE NOT EXISTS (FROM required WHERE key = ?)",
            [key, key],
        )
    tables = DuckDbTables(connection)
    create_no_absences(tables)
    create_ends(tables, model, fold_sql(model, 1))
    create_absences(tables, model.expires, STREAM)
    drop_absences(tables)
    rows = connection.execute("SELECT * FROM absences").fetchall()
    return {(key, position): (may, must) for key, position, may, must in rows}


def required(connection: duckdb.DuckDBPyConnection) -> Sequence[str]:
    return [key for (key,) in connection.execute("SELECT key FROM required ORDER BY key").fetchall()]


def test_an_item_has_left_from_the_event_on_that_ends_it(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("INSERT INTO stored VALUES ('lake', 'stored', 0), ('lake', 'stored', 1)")

    found = absences(
        connection,
        ENDING,
        ("stored", 0, "FundsAdded", 0),
        ("stored", 1, "FundsWithdrawn", 0),
        ("stored", 2, "FundsAdded", 0),
        ("left", 3, "FundsWithdrawn", 0),
        ("left", 4, "FundsAdded", 0),
        ("active", 5, "FundsAdded", 0),
    )

    assert found == {
        ("stored", 0): STAYS,
        ("stored", 1): REQUIRED,
        ("stored", None): STAYS,
        ("left", None): REQUIRED,
        ("active", None): STAYS,
    }
    assert required(connection) == ["active", "stored"]


def test_an_item_may_be_there_for_a_while_after_it_has_expired(connection: duckdb.DuckDBPyConnection) -> None:
    hours = {"new": 20.0, "in time": 17.0, "perhaps": 16.9, "still": 8.0, "expired": 7.9}
    found = absences(
        connection, EXPIRING, *((key, n, "FundsAdded", hour) for n, (key, hour) in enumerate(hours.items()))
    )

    assert {key: one for (key, _), one in found.items()} == {
        "new": STAYS,
        "in time": STAYS,
        "perhaps": ALLOWED,
        "still": ALLOWED,
        "expired": REQUIRED,
    }
    assert required(connection) == ["in time", "new"]


def test_an_item_that_has_ended_is_not_the_newest_that_every_store_has_seen(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    model = replace(EXPIRING, ended=ENDING.ended)

    found = absences(
        connection,
        model,
        ("old", 0, "FundsAdded", 0),
        ("there", 1, "FundsAdded", 11),
        ("left", 2, "FundsWithdrawn", 20),
    )

    assert found == {("old", None): ALLOWED, ("there", None): ALLOWED, ("left", None): REQUIRED}
