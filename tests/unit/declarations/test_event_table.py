"""Event tables are found beside read models; what cannot work, and what would keep personal data, is refused."""

import json
from pathlib import Path

import pytest

from demo.pos.dataset import SYSTEM
from include.declarations.load import load_catalog
from include.declarations.topic_tables import load_lake_catalog
from include.errors import ReadModelError, UnknownReadModelError
from include.settings import Settings
from tests.support.declarations.refusal import refusal

MODULE = """
from include.declarations.event_table import EventTable
EVENT_TABLE = EventTable({name!r}, "sales", {event_type!r})
"""
TIME = {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}}


def declare(folder: Path, *fields: object, name: str = "sales", event_type: str = "Sale") -> None:
    """Declare an event table, and its event type with these fields, if any."""
    (folder / f"{name}_table.py").write_text(MODULE.format(name=name, event_type=event_type))
    if fields:
        record = {"type": "record", "name": "Sale", "namespace": "foldlake.test", "fields": list(fields)}
        (folder / "Sale.avsc").write_text(json.dumps(record))


def test_the_line_items_of_pos_are_an_event_table() -> None:
    table = load_catalog((SYSTEM,)).event_tables["trend"]

    assert (table.source_topic, table.event_type) == ("trend-records", "TrendRecord")
    assert [column.name for column in table.columns][-4:] == [
        "totalValue",
        "occurred_month",
        "source_partition",
        "source_offset",
    ]


def test_an_event_table_is_one_file(tmp_path: Path) -> None:
    declare(tmp_path, TIME, {"name": "price", "type": "long", "doc": "In cents."})

    (table,) = load_catalog((tmp_path,)).event_tables.values()

    assert [(column.name, column.doc) for column in table.columns][:2] == [
        ("occurredOn", ""),
        ("price", "In cents."),
    ]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ([{"name": "id", "type": "string"}], "Sale of event table sales has no field occurredOn"),
        (
            [TIME, {"name": "card", "type": "string", "foldlake.privacy": "personal"}],
            "would keep card of Sale, which is personal: write the events with a route",
        ),
        (
            [TIME, {"name": "Source_Offset", "type": "long"}],
            "field Source_Offset, which is the name of a column of every event table",
        ),
    ],
)
def test_events_that_cannot_be_rows_are_refused(tmp_path: Path, fields: list[object], error: str) -> None:
    declare(tmp_path, *fields)

    assert load_catalog((tmp_path,)).event_tables == {}
    assert error in refusal(tmp_path)


def test_a_personal_field_inside_a_record_is_refused(tmp_path: Path) -> None:
    inner = {"name": "street", "type": "string", "foldlake.privacy": "personal"}
    address = {"type": "record", "name": "Address", "fields": [inner]}
    declare(tmp_path, TIME, {"name": "address", "type": ["null", address], "default": None})

    assert "would keep address of Sale" in refusal(tmp_path)


def test_a_pseudonym_is_allowed(tmp_path: Path) -> None:
    declare(tmp_path, TIME, {"name": "card", "type": "string", "foldlake.privacy": "pseudonym"})

    assert list(load_catalog((tmp_path,)).event_tables) == ["sales"]


def test_a_table_has_one_declaration(tmp_path: Path) -> None:
    declare(tmp_path, event_type="FundsAdded", name="balance")

    with pytest.raises(ReadModelError, match="named 'balance', and both would be lake/balance"):
        load_catalog((tmp_path,))


def test_a_name_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    declare(tmp_path, event_type="FundsAdded", name="Sales")

    assert "'Sales' is not valid" in refusal(tmp_path)


def test_an_event_type_without_schema_is_refused(tmp_path: Path) -> None:
    declare(tmp_path)

    assert "no schema of event type Sale" in refusal(tmp_path)


def test_another_value_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "sales.py").write_text("EVENT_TABLE = 'sales'\n")

    assert load_catalog((tmp_path,)).event_tables == {}
    assert "must be of type EventTable" in refusal(tmp_path)


def test_an_unknown_table_is_named_with_those_that_exist(tmp_path: Path) -> None:
    catalog = load_lake_catalog(Settings.of(home=tmp_path, systems=("pos",), lake_event_tables=("off",)))

    for name in ("", "trend", "balance"):
        catalog.require_table(name)
    with pytest.raises(UnknownReadModelError, match=r"table 'trends'\. Known ones: balance, loyalty, trend"):
        catalog.require_table("trends")
