"""The event table of a topic has the events of all its types, also when another type is read later, and is compared with the log."""

import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.topic_tables import TopicTable
from include.kafka.events import GenericEvent
from include.lake.event_table_check import check_event_table
from include.lake.tables import table_path
from include.replay.table_proof import compare_with_log
from include.settings import Settings
from spark_jobs.event_tables import append_new
from tests.support.lake.event_ledger import FIELDS, FIRST_DAY, EventLedger


@pytest.fixture(scope="module")
def returns(settings: Settings, lake_spark: SparkSession) -> tuple[EventLedger, TopicTable]:
    """The table of a topic with 50 sales, to which only these were appended, and then also the 20 returns that were there all the time."""
    ledger = EventLedger(settings, "sold-and-returned")
    fields = [
        *FIELDS[:3],
        {"name": "reason", "type": "string"},
        {**FIELDS[0], "name": "card", "foldlake.privacy": "personal"},
    ]
    returned = replace(
        ledger.schema,
        name="Returned",
        full_name="foldlake.test.Returned",
        fields=tuple(f["name"] for f in fields),
    )
    returned = replace(
        returned, text=json.dumps({**ledger.schema.parsed(), "name": "Returned", "fields": fields})
    )
    ledger.sell(0, 50)
    ledger.source.append(
        [
            GenericEvent(
                returned,
                {
                    "id": f"return-{n}",
                    "occurredOn": FIRST_DAY,
                    "store": str(n % 11),
                    "reason": "broken",
                    "card": "4",
                },
            )
            for n in range(20)
        ]
    )
    sales = append_new(lake_spark, settings, TopicTable(TopicEvents(ledger.name, (ledger.schema,))))
    assert sales is not None
    assert (sales.tag.rows, sales.tag.other_types) == (50, 20)
    both = TopicTable(TopicEvents(ledger.name, (ledger.schema, returned)))
    done = append_new(lake_spark, settings, both, slice_records=30)
    assert done is not None
    assert (done.tag.rows, done.tag.other_types, done.tag.generation) == (70, 0, 1)
    return ledger, both


def test_the_table_of_a_topic_has_the_events_of_each_type_without_personal_fields(
    returns: tuple[EventLedger, TopicTable],
) -> None:
    ledger, table = returns
    rows = DeltaTable(table_path(ledger.settings.lake_root, "events/sold-and-returned")).to_pyarrow_table()

    assert rows.column_names == [column.name for column in table.columns]
    assert rows.column_names[:6] == ["event_type", "id", "occurredOn", "store", "price", "reason"]
    found = {row["id"]: (row["event_type"], row["price"], row["reason"]) for row in rows.to_pylist()}
    expected: dict[str, tuple[str, Decimal | None, str | None]] = {
        name: ("Sale", price, None) for name, (_, price, _) in ledger.expected.items()
    }
    assert found == expected | {f"return-{n}": ("Returned", None, "broken") for n in range(20)}
    assert rows.num_rows == 70


def test_the_table_of_a_topic_equals_the_log_and_a_lost_or_foreign_row_is_found(
    returns: tuple[EventLedger, TopicTable],
) -> None:
    ledger, table = returns
    settings = ledger.settings
    assert check_event_table(settings.lake_root, table).is_exact
    assert (
        str(compare_with_log(settings, table))
        == "as in the log, 70 events compared, 0 records not appended yet"
    )
    ledger.sell(50, 5)
    assert compare_with_log(settings, table).behind == 5

    delta = DeltaTable(table_path(settings.lake_root, table.name))
    row = delta.to_pyarrow_table(filters=[("id", "=", "sale-7")])
    delta.delete("id = 'sale-7'")
    far = row.set_column(row.schema.get_field_index("source_offset"), "source_offset", pa.array([10_000]))
    write_deltalake(delta, far, mode="append")

    found = compare_with_log(settings, table)
    assert (found.missing, found.surplus, found.changed, found.is_exact) == (1, 1, 0, False)
    at = ", ".join(f"{name} {row[f'source_{name}'][0].as_py()}" for name in ("partition", "offset"))
    assert f"{at}, key 7: no row" in found.named
    assert any(one.endswith("offset 10000, key 7: no such event") for one in found.named)
    assert not check_event_table(settings.lake_root, table).is_exact
