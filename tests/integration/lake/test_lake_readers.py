"""Analysts' tools can read `lake/<model>`: exact decimals in four engines, time travel, and every example of docs/how-to/lake-readers.md. What another program appends is found."""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import duckdb_ext
import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cli.lake import read_model_lines
from include.lake.as_of import NoHistoryError, table_as_of
from include.lake.event_table_check import check_event_table
from include.lake.status import read_model_status
from include.settings import Settings
from spark_jobs.compaction import compact
from spark_jobs.event_tables import append_new
from spark_jobs.lake.lake_table import LakeTable
from tests.support.documentation.page_blocks import blocks_run
from tests.support.lake.event_ledger import EventLedger
from tests.support.lake.lake_ledger import LakeLedger

DOCUMENTED_PATH = ".foldlake/lake/balance"
EXAMPLES = [block.text for block in blocks_run("lake")]
Reader = Callable[[str, SparkSession], dict[str, Decimal]]
# More digits than a double has, cents, and a negative amount.
AMOUNTS = {
    "rich": Decimal("123456789012345678901234567890123456.78"),
    "cents": Decimal("0.01"),
    "debt": Decimal("-99999999999999999.99"),
    "name with / and é": Decimal("5.00"),
}


@pytest.fixture(scope="module")
def ledger(settings: Settings, lake_spark: SparkSession) -> LakeLedger:
    """Return a table that contained version 1 for two weeks and has just been promoted to version 2."""
    ledger = LakeLedger(settings, "analysed")
    for key in AMOUNTS:
        ledger.put(key, 100, 1)
    ledger.flush()
    compact(lake_spark, settings, ledger.model)
    two_weeks_ago = (datetime.now(UTC) - timedelta(days=14)).timestamp()
    for commit in (Path(ledger.table) / "_delta_log").glob("*.json"):
        os.utime(commit, (two_weeks_ago, two_weeks_ago))
    ledger.make_new_version_live(2)
    for key, amount in AMOUNTS.items():
        ledger.writer.write(key, amount, 2, 1)
    ledger.flush()
    compact(lake_spark, settings, ledger.model)
    return ledger


def with_spark(path: str, spark: SparkSession) -> dict[str, Decimal]:
    return {row.key: row.amount for row in spark.read.format("delta").load(path).collect()}


def with_delta_rs(path: str, _: SparkSession) -> dict[str, Decimal]:
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    return {row["key"]: row["amount"] for row in rows}


def with_duckdb(path: str, _: SparkSession) -> dict[str, Decimal]:
    connection = duckdb.connect()
    connection.execute(f"set extension_directory = '{next(iter(duckdb_ext.__path__))}/extensions'")
    connection.execute("load delta")
    return dict(connection.execute("select key, amount from delta_scan(?)", [path]).fetchall())


def with_polars(path: str, _: SparkSession) -> dict[str, Decimal]:
    return dict(pl.read_delta(path).select("key", "amount").iter_rows())


@pytest.mark.parametrize("read", [with_spark, with_delta_rs, with_duckdb, with_polars])
def test_every_engine_reads_exact_decimals(
    ledger: LakeLedger, lake_spark: SparkSession, read: Reader
) -> None:
    assert read(ledger.table, lake_spark) == AMOUNTS


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_in_the_docs_run(ledger: LakeLedger, lake_spark: SparkSession, number: int) -> None:
    names: dict[str, object] = {"spark": lake_spark}
    assert DOCUMENTED_PATH in EXAMPLES[number]

    exec(EXAMPLES[number].replace(DOCUMENTED_PATH, ledger.table), names)  # noqa: S102 - code of our own docs

    if "top" in names:
        top = names["top"]
        rows = list(top.iter_rows()) if isinstance(top, pl.DataFrame) else [tuple(r) for r in top]  # type: ignore[attr-defined]
        assert rows == sorted(AMOUNTS.items(), key=lambda pair: -pair[1])
    if "balances" in names:
        assert set(names["balances"].to_pydict()["amount"]) == {Decimal("1.00")}  # type: ignore[attr-defined]


def test_as_of_a_time_before_the_first_content_there_is_no_answer(ledger: LakeLedger) -> None:
    with pytest.raises(NoHistoryError, match="it has nothing as of 2020-01-01"):
        table_as_of(ledger.table, datetime(2020, 1, 1, tzinfo=UTC))


def test_the_status_shows_the_content_of_the_table(ledger: LakeLedger) -> None:
    status = read_model_status(
        ledger.settings.lake_root, ledger.settings.kafka_connection, ledger.model, commits=5
    )

    assert status is not None
    assert (status.table.rows, status.table.version) == (len(AMOUNTS), 2)
    assert status.table.behind is not None
    # The history seemed two weeks old at the compaction, so VACUUM was due.
    operations = [commit.tag.operation for commit in status.table.history if commit.tag]
    assert operations == ["vacuum", "vacuum", "promotion", "promotion"]
    text = "\n".join(read_model_lines(status))
    assert "analysed: version 2" in text
    assert re.search(r"^  \d+ .* promotion +2$", text, re.MULTILINE)


def test_the_status_of_an_empty_table_is_complete(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = LakeLedger(settings, "just-created")
    LakeTable(lake_spark, ledger.table, settings.lake.retention_h, ledger.model).ensure()

    status = read_model_status(settings.lake_root, settings.kafka_connection, ledger.model, commits=5)

    assert status is not None
    assert (status.table.version, status.table.complete_up_to) == (None, {})
    assert status.table.behind is not None
    assert "just-created: no version yet" in "\n".join(read_model_lines(status))


def test_a_row_that_another_program_has_appended_again_fails_the_check_of_an_event_table(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = EventLedger(settings, "doubled")
    ledger.sell(0, 20)
    append_new(lake_spark, settings, ledger.declared)
    assert check_event_table(settings.lake_root, ledger.declared).is_exact
    table = DeltaTable(ledger.path)
    write_deltalake(table, table.to_pyarrow_table().slice(0, 1), mode="append")

    assert str(check_event_table(settings.lake_root, ledger.declared)) == (
        "21 rows instead of 20; 1 row with the partition and offset of another row; "
        "1 event in the topic twice, by id"
    )
