"""The lake's tables in SQL: their names, their content and history, read with DuckDB without a stack."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import CommitProperties, write_deltalake

from include.lake.sql_tables import (
    NoLakeError,
    connect,
    extension_folder,
    overview,
    setup_statements,
    sql_name,
    sql_tables,
)
from include.lake.tags import CommitTag
from include.position import Offsets

SHELL = Path(sys.executable).with_name("duckdb")


def commit(path: Path, amounts: dict[str, int], metadata: str | None = None) -> None:
    """Replace the content of a table."""
    frame = pl.DataFrame({"key": list(amounts), "amount": list(amounts.values())})
    properties = CommitProperties(custom_metadata={"userMetadata": metadata} if metadata else None)
    write_deltalake(str(path), frame.to_arrow(), mode="overwrite", commit_properties=properties)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a read model of two versions, the events of a topic, results of checks, and what is no table for analysts."""
    root = tmp_path_factory.mktemp("it's a lake")
    tag = CommitTag("balance", 1, 1, "promotion", complete_up_to=Offsets({0: 7}))
    commit(root / "balance", {"a": 1}, tag.to_json())
    commit(root / "balance", {"a": 5, "b": 2}, "written by another program")
    commit(root / "order-location", {"o": 1})
    commit(root / "events" / "loyalty-invoices", {"i": 1})
    commit(root / "_quality", {"q": 1})
    commit(root / "_staging" / "balance" / "v2", {"s": 1})
    return root


@pytest.fixture
def connection(lake: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the lake's tables."""
    return connect(str(lake))


def test_every_table_has_a_name_in_sql(lake: Path) -> None:
    assert [table.name for table in sql_tables(str(lake))] == [
        *("balance", "order_location", "events_loyalty_invoices", "_quality")
    ]
    assert sql_name("system") == "system_table"


def test_a_table_is_read_as_it_is_now_and_as_it_was(connection: duckdb.DuckDBPyConnection) -> None:
    assert connection.execute("from balance order by key").fetchall() == [("a", 5), ("b", 2)]
    assert connection.execute("from balance at (version => 0)").fetchall() == [("a", 1)]
    assert connection.execute("select key from events_loyalty_invoices").fetchall() == [("i",)]


def test_the_history_has_the_tag_of_each_commit(connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.execute(
        "select delta_version, operation, model_version, complete_up_to, committed_at from balance_history"
    ).fetchall()

    assert [row[:4] for row in found] == [(0, "promotion", 1, '{"0":7}'), (1, "write", None, None)]
    assert abs((datetime.now(UTC) - found[0][4]).total_seconds()) < 600


def test_a_version_is_found_by_time_and_a_time_before_the_history_is_an_error(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute("set variable earlier = version_as_of('balance', now())")
    assert connection.execute(
        "select count(*) from balance at (version => getvariable('earlier'))"
    ).fetchall() == [(2,)]

    with pytest.raises(duckdb.InvalidInputException, match="The history of balance begins after 2020-01-01"):
        connection.execute("select version_as_of('balance', '2020-01-01')")


@pytest.mark.parametrize(
    "change", ["insert into balance values ('c', 1)", "delete from balance", "drop table balance"]
)
def test_a_table_cannot_be_changed(connection: duckdb.DuckDBPyConnection, change: str) -> None:
    with pytest.raises(duckdb.Error):
        connection.execute(change)
    assert connection.execute("select count(*) from balance").fetchall() == [(2,)]


def test_a_table_is_opened_by_the_query_that_uses_it(lake: Path, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    shutil.copytree(lake, root)
    (root / "order-location" / "_delta_log" / f"{0:020}.json").write_text("not JSON")

    assert connect(str(root)).execute("select count(*) from balance").fetchall() == [(2,)]


def test_a_commit_that_is_written_meanwhile_is_read_by_the_next_query(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    commit(root / "balance", {"a": 1})
    connection = connect(str(root))

    def count() -> object:
        return connection.execute("select count(*) from balance").fetchone()

    assert count() == (1,)

    commit(root / "balance", {"a": 1, "b": 2})

    assert count() == (2,)


def test_a_lake_without_tables_and_one_elsewhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoLakeError, match=r"There is no table in .* yet"):
        sql_tables(str(tmp_path / "none"))
    with pytest.raises(NoLakeError, match="s3://bucket/lake is not on a file system of this machine"):
        sql_tables("s3://bucket/lake")


def test_the_overview_fits_into_80_columns(lake: Path) -> None:
    tables = sql_tables(str(lake)) * 8

    assert max(map(len, overview(tables).splitlines())) <= 80


def test_shell_library_and_extension_are_of_one_version() -> None:
    shell = subprocess.run(
        [str(SHELL), "--version"], capture_output=True, text=True, timeout=60, check=True
    ).stdout

    assert shell.split()[0] == f"v{duckdb.__version__}"
    assert list(extension_folder().glob(f"v{duckdb.__version__}/*/delta.duckdb_extension"))


def test_duckdbs_shell_runs_the_same_statements(lake: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.sql"
    start.write_text(
        "".join(f"{one};\n" for one in setup_statements(extension_folder(), sql_tables(str(lake))))
    )

    done = subprocess.run(
        [str(SHELL), "-init", "/dev/null", "-json", "-cmd", f".read '{start}'"],
        input="from balance\norder by key;\n.quit\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert json.loads(done.stdout) == [{"key": "a", "amount": 5}, {"key": "b", "amount": 2}]
    assert done.stderr == ""
