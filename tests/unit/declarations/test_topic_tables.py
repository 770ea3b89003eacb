"""Each topic of read models' events has an event table by default; its columns are the fields of all event types without personal ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from demo.pos.dataset import SYSTEM
from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.load import load_catalog
from include.declarations.topic_tables import TopicTable, load_lake_catalog, topic_tables
from include.errors import ReadModelError, UnknownReadModelError
from include.kafka.record_schema import RecordSchema
from include.settings import Settings
from include.settings.systems import system_folder

TIME = {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}}
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}


def event(name: str, *fields: dict[str, Any]) -> RecordSchema:
    """Return the schema of an event type with a time and these fields."""
    return RecordSchema.parse(json.dumps({"type": "record", "name": name, "fields": [TIME, *fields]}), name)


def columns(*readers: RecordSchema) -> dict[str, dict[str, str]]:
    """Return the fields of each column of a topic's table, without the columns that every table has."""
    table = TopicTable(TopicEvents("sales", readers))
    return {column.name: dict(column.fields) for column in table.columns if column.fields}


def test_the_events_of_the_balance_are_one_table() -> None:
    (table,) = topic_tables(load_catalog(), ("auto",)).values()

    assert (table.name, table.source_topic) == ("events/balance", "balance")
    assert [column.name for column in table.columns] == [
        *("event_type", "id", "occurredOn", "customerId", "amount"),
        *("occurred_month", "source_partition", "source_offset"),
    ]
    assert table.columns[-4].fields == {"FundsAdded": "amount", "FundsWithdrawn": "amount"}


def test_a_field_of_one_event_type_is_a_column_of_its_own() -> None:
    sold = event("Sold", {"name": "price", "type": "long"})
    returned = event(
        "Returned", {"name": "price", "type": ["null", "long"]}, {"name": "reason", "type": "string"}
    )

    assert columns(sold, returned) == {
        "occurredOn": {"Sold": "occurredOn", "Returned": "occurredOn"},
        "price": {"Sold": "price", "Returned": "price"},
        "reason": {"Returned": "reason"},
    }


def test_a_column_that_is_named_after_its_type_is_not_that_of_a_field_of_this_name() -> None:
    sold = event("Sold", {"name": "price", "type": "long"}, {"name": "returned_PRICE", "type": "int"})
    returned = event("Returned", {"name": "price", "type": "string"}, {"name": "offset", "type": "long"})
    resold = event(
        "Resold", {"name": "Returned_Returned_price", "type": "long"}, {"name": "event_TYPE", "type": "int"}
    )

    assert columns(sold, returned, resold) == {
        "occurredOn": {"Sold": "occurredOn", "Returned": "occurredOn", "Resold": "occurredOn"},
        "price": {"Sold": "price"},
        "returned_PRICE": {"Sold": "returned_PRICE"},
        "Returned_Returned_price": {"Returned": "price"},
        "offset": {"Returned": "offset"},
        "Resold_Returned_Returned_price": {"Resold": "Returned_Returned_price"},
        "Resold_event_TYPE": {"Resold": "event_TYPE"},
    }


def test_fields_of_one_name_and_different_types_are_two_columns() -> None:
    sold, returned = (
        event(name, {"name": "price", "type": kind})
        for name, kind in (("Sold", "long"), ("Returned", "string"))
    )

    assert {"price", "Returned_price"} < columns(sold, returned).keys()


@pytest.mark.parametrize("name", ["event_type", "Source_Offset", "occurred_month"])
def test_a_field_with_the_name_of_another_column_is_named_after_its_event_type(name: str) -> None:
    assert columns(event("Sold", {"name": name, "type": "string"}))[f"Sold_{name}"] == {"Sold": name}


def test_a_personal_field_has_no_column() -> None:
    card = {"name": "card", "type": "string", "foldlake.privacy": "personal"}
    address = {
        "name": "address",
        "type": {
            "type": "record",
            "name": "Address",
            "fields": [{"name": "street", "type": "string", "foldlake.privacy": "personal"}],
        },
    }
    pseudonym = {"name": "customer", "type": "string", "foldlake.privacy": "pseudonym"}

    assert columns(event("Sold", card, address, pseudonym)).keys() == {"occurredOn", "customer"}


def test_a_type_that_a_left_out_field_defines_is_defined_where_it_is_used() -> None:
    home = {"name": "home", "type": PLACE, "foldlake.privacy": "personal"}
    sold = event("Sold", home, {"name": "shop", "type": ["null", "Place"]})

    table = TopicTable(TopicEvents("sales", (sold,)))

    assert {column.name: column.avro_type for column in table.columns}["shop"] == ["null", PLACE]


def test_topics_that_a_declared_table_has_or_that_are_not_folded_have_none_by_default() -> None:
    catalog = load_catalog((SYSTEM, system_folder("logs")))

    names = set(topic_tables(catalog, ("auto",)))

    assert names == {
        *("events/balance", "events/loyalty-invoices"),
        *("events/catalogue", "events/product-views", "events/browser-windows"),
    }
    loyalty = topic_tables(catalog, ("auto",))["events/loyalty-invoices"]
    assert "cardNumber" not in {column.name for column in loyalty.columns}


def test_the_setting_names_topics_or_none() -> None:
    catalog = load_catalog((SYSTEM,))

    assert topic_tables(catalog, ("off",)) == {}
    assert list(topic_tables(catalog, ("pos-invoices",))) == ["events/pos-invoices"]
    with pytest.raises(ReadModelError, match="names topic nothing, which no read model or route reads"):
        topic_tables(catalog, ("nothing",))
    with pytest.raises(ReadModelError, match="names topic logs, which is in JSON"):
        topic_tables(load_catalog((system_folder("logs"),)), ("logs",))


def test_a_read_model_whose_topic_expires_has_no_table_by_default(tmp_path: Path) -> None:
    (tmp_path / "recent.py").write_text(
        "from dataclasses import replace\n"
        "from include.declarations.topic_options import TopicOptions\n"
        "from include.read_models.balance.model import READ_MODEL as BALANCE\n"
        "READ_MODEL = replace(BALANCE, name='recent', source_topic='recent', topic=TopicOptions(retention_ms=1000))\n"
    )

    assert list(topic_tables(load_catalog((tmp_path,)), ("auto",))) == ["events/balance"]


def test_a_read_model_must_not_have_the_name_of_their_folder(tmp_path: Path) -> None:
    (tmp_path / "events.py").write_text(
        "from dataclasses import replace\n"
        "from include.read_models.balance.model import READ_MODEL as BALANCE\n"
        "READ_MODEL = replace(BALANCE, name='events')\n"
    )

    with pytest.raises(ReadModelError, match="named 'events': its table would contain those of the topics"):
        topic_tables(load_catalog((tmp_path,)), ("auto",))


def test_tables_are_found_by_name(tmp_path: Path) -> None:
    catalog = load_lake_catalog(Settings.of(home=tmp_path, systems=("pos",)))

    assert [table.name for table in catalog.appended_tables("trend")] == ["trend"]
    assert [table.name for table in catalog.appended_tables("events")] == list(catalog.of_topics)
    assert {table.name for table in catalog.appended_tables("")} == {"trend", *catalog.of_topics}
    catalog.require_table("")
    catalog.require_table("events/balance")
    with pytest.raises(UnknownReadModelError, match="no read model or event table 'sales'"):
        catalog.require_table("sales")
    with pytest.raises(ReadModelError, match="no event table 'balance'"):
        catalog.appended_tables("balance")
