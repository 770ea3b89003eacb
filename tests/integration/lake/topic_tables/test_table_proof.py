"""An event table is proved against the log once; later, only new rows are read from there, and a row that is changed is found."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from include.lake.tables import proof_file
from include.replay.table_proof import compare_with_log
from include.settings import Settings
from spark_jobs.event_tables import append_new
from tests.support.faults.rounding_decoders import round_without_spark
from tests.support.lake.event_ledger import EventLedger


def appended(ledger: EventLedger, spark: SparkSession) -> EventLedger:
    assert append_new(spark, ledger.settings, ledger.declared) is not None
    return ledger


def test_rows_that_are_proved_are_not_read_from_the_log_again(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = EventLedger(settings, "proved")
    ledger.sell(0, 40)
    ledger.append_raw(b"1", b"junk")
    appended(ledger, lake_spark)
    first = compare_with_log(settings, ledger.declared)
    assert (first.is_exact, first.proved, first.compared) == (True, 0, 40)

    ledger.sell(40, 7)
    assert compare_with_log(settings, ledger.declared).behind == 7
    appended(ledger, lake_spark)
    second = compare_with_log(settings, ledger.declared)
    assert (second.is_exact, second.proved, second.compared) == (True, 40, 7)
    assert str(second).startswith("as in the log, 40 rows as proved before, 7 events compared")

    DeltaTable(ledger.path).optimize.compact()
    third = compare_with_log(settings, ledger.declared)
    assert (third.is_exact, third.proved, third.compared) == (True, 47, 0)
    assert compare_with_log(settings, ledger.declared, from_log=True).compared == 47


def change_price(table: DeltaTable, row: pa.Table) -> None:
    table.update(predicate=f"id = '{row['id'][0]}'", updates={"price": "CAST(7.01 AS DECIMAL(18, 2))"})


def double(table: DeltaTable, row: pa.Table) -> None:
    write_deltalake(table, row, mode="append")


def remove(table: DeltaTable, row: pa.Table) -> None:
    table.delete(f"id = '{row['id'][0]}'")


def exchange_offsets(table: DeltaTable, row: pa.Table) -> None:
    """Exchange the offset with that of the other sale of the same store."""
    other = table.to_pyarrow_table(
        filters=[("store", "=", row["store"][0].as_py()), ("id", "!=", row["id"][0].as_py())]
    )
    place = row.schema.get_field_index("source_offset")
    both = [
        one.set_column(place, "source_offset", two["source_offset"])
        for one, two in ((row, other), (other, row))
    ]
    table.delete(f"store = '{row['store'][0]}'")
    write_deltalake(table, pa.concat_tables(both), mode="append")


@pytest.mark.parametrize("is_proved_before", [True, False])
@pytest.mark.parametrize(
    ("plant", "counts", "text"),
    [
        (change_price, (0, 0, 1), "price 0.49 in the log, 7.01 in the table"),
        (double, (0, 1, 0), "2 rows"),
        (remove, (1, 0, 0), "no row"),
        (exchange_offsets, (0, 0, 2), "id sale-7 in the log, sale-18 in the table"),
    ],
)
def test_a_row_that_another_program_has_changed_is_named(
    settings: Settings,
    lake_spark: SparkSession,
    plant: Callable[[DeltaTable, pa.Table], None],
    counts: tuple[int, int, int],
    text: str,
    is_proved_before: bool,
) -> None:
    ledger = EventLedger(settings, f"planted-{plant.__name__.replace('_', '-')}-{is_proved_before}".lower())
    ledger.sell(0, 22)
    appended(ledger, lake_spark)
    if is_proved_before:
        assert compare_with_log(settings, ledger.declared).is_exact
    table = DeltaTable(ledger.path)
    row = table.to_pyarrow_table(filters=[("id", "=", "sale-7")])

    plant(table, row)
    found = compare_with_log(settings, ledger.declared)

    assert (found.missing, found.surplus, found.changed) == counts
    at = ", ".join(f"{name} {row[f'source_{name}'][0].as_py()}" for name in ("partition", "offset"))
    assert any(one.startswith(f"{at}, key 7: ") and text in one for one in found.named), found.named
    again = compare_with_log(settings, ledger.declared)
    assert (again.missing, again.surplus, again.changed) == counts


def test_a_proof_that_is_no_proof_is_made_again(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = EventLedger(settings, "unreadable-proof")
    ledger.sell(0, 5)
    appended(ledger, lake_spark)
    assert compare_with_log(settings, ledger.declared).compared == 5
    with open(proof_file(settings.lake_root.removeprefix("file://"), ledger.name), "w") as file:  # noqa: PTH123 - a path of the lake
        file.write('{"offsets": {"0": 10')

    found = compare_with_log(settings, ledger.declared)

    assert (found.is_exact, found.proved, found.compared) == (True, 0, 5)


def test_a_decoder_that_rounds_is_found(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EventLedger(settings, "rounded")
    ledger.sell(0, 22)
    appended(ledger, lake_spark)
    round_without_spark(monkeypatch, "price")

    found = compare_with_log(settings, ledger.declared)

    # Of 0.00, 0.07, ... 1.47, three have no second decimal.
    assert (found.changed, found.missing, found.surplus) == (19, 0, 0)
