"""A read model's declaration is validated when it is created, and determines its state record."""

import json
from pathlib import Path

import pytest

from include.declarations.load import load_catalog, read_model
from include.declarations.read_model import POSITION_FIELDS, ReadModel, StateField, decimal_type
from include.errors import ReadModelError, UnknownReadModelError
from include.kafka.record_schema import ItemLifetime
from include.settings.systems import system_folder


def declare(**changes: object) -> ReadModel:
    values: dict[str, object] = {
        "name": "orders",
        "source_topic": "orders",
        "event_types": ("FundsAdded",),
        "key": lambda: None,
        "state": (StateField("total", decimal_type(10, 2)),),
        "folds": {1: dict, 3: dict},
    }
    return ReadModel(**{**values, **changes})  # type: ignore[arg-type]  # built from a dictionary


@pytest.mark.parametrize("name", ["Orders", "", "1st", "or_ders", "or.ders"])
def test_name_that_is_invalid_for_a_topic_is_rejected(name: str) -> None:
    with pytest.raises(ReadModelError, match="use lower-case letters"):
        declare(name=name)


def test_read_model_without_a_fold_is_rejected() -> None:
    with pytest.raises(ReadModelError, match="has no fold"):
        declare(folds={})


def test_a_merge_of_a_revision_without_a_fold_is_rejected() -> None:
    with pytest.raises(ReadModelError, match="merge of revision 2, but no such fold"):
        declare(merges={1: dict, 2: dict})


def test_state_must_not_declare_position_fields() -> None:
    with pytest.raises(ReadModelError, match="event_count"):
        declare(state=(StateField("event_count", "long"),))


def test_new_version_gets_the_newest_fold() -> None:
    assert declare().newest_fold_revision == 3


def test_state_record_is_the_state_and_its_position() -> None:
    schema = json.loads(declare(name="shop-orders").state_schema.text)
    assert (schema["namespace"], schema["name"]) == ("foldlake.state", "ShopOrders")
    assert [field["name"] for field in schema["fields"]] == [
        "total",
        *(field.name for field in POSITION_FIELDS),
    ]


def test_balance_is_declared() -> None:
    balance = read_model("balance")
    assert balance.event_types == ("FundsAdded", "FundsWithdrawn")
    assert {schema.key_field for schema in balance.event_schemas} == {"customerId"}


def test_unknown_name_raises_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UnknownReadModelError, match="Known read models: balance"):
        read_model("balances")


def test_items_that_end_have_no_merges() -> None:
    with pytest.raises(ReadModelError, match="remove merges, or `ended`"):
        declare(ended=lambda: None, merges={1: dict})


def test_items_that_end_keep_their_key() -> None:
    with pytest.raises(ReadModelError, match="remove rekey, or `ended`"):
        declare(ended=lambda: None, rekey=True)


def test_items_that_end_have_a_lifetime() -> None:
    with pytest.raises(
        ReadModelError, match=r"do not declare one foldlake\.lifetime: give the schemas of FundsAdded"
    ):
        _ = declare(ended=lambda: None).lifetime
    assert declare().lifetime is None


ENDING = """
from dataclasses import replace
from demo.systems.orders.order_location import READ_MODEL as ORDERS
READ_MODEL = replace(ORDERS, name="{name}", source_topic="{topic}")
"""
WRITING = """
from include.declarations.kinds.route import Route
ROUTE = Route(name="orders", source_topic="orders", event_types=("OrderLocation",), output_topic="placed-orders")
"""


def test_items_that_end_are_read_from_the_producers_topic(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text(ENDING.format(name="ending", topic="placed-orders"))
    (tmp_path / "writing.py").write_text(WRITING)
    folders = (tmp_path, system_folder("orders"))

    with pytest.raises(ReadModelError, match="route orders writes placed-orders"):
        load_catalog(folders)


def test_order_location_is_declared() -> None:
    model = read_model("order-location", (system_folder("orders"),))
    assert model.lifetime == ItemLifetime("placedOn", 4)
