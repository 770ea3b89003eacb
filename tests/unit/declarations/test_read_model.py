"""A read-model module's declaration is checked when it is made, and its state record follows from it."""

import json
from pathlib import Path

import pytest

from include.declarations.read_model import (
    POSITION_FIELDS,
    ReadModel,
    StateField,
    decimal_type,
    load_read_models,
    read_model,
)
from include.errors import ReadModelError, UnknownReadModelError


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
def test_name_that_cannot_name_a_topic_is_refused(name: str) -> None:
    with pytest.raises(ReadModelError, match="use lower-case letters"):
        declare(name=name)


def test_read_model_without_a_fold_is_refused() -> None:
    with pytest.raises(ReadModelError, match="has no fold"):
        declare(folds={})


def test_state_must_not_declare_what_every_record_has() -> None:
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


def test_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownReadModelError, match="known are balance"):
        read_model("balances")


def test_module_without_a_read_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "forgotten.py").write_text("")
    with pytest.raises(ReadModelError, match="forgotten"):
        load_read_models(tmp_path)


def test_further_folder_counts_only_where_it_is_asked_for(tmp_path: Path) -> None:
    text = Path("include/read_models/balance.py").read_text(encoding="utf-8")
    (tmp_path / "purse.py").write_text(text.replace('name="balance"', 'name="purse"'))
    assert load_read_models(tmp_path).keys() == {"balance", "purse"}
    assert load_read_models().keys() == {"balance"}


def test_two_modules_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(Path("include/read_models/balance.py").read_text(encoding="utf-8"))
    with pytest.raises(ReadModelError, match="named 'balance'"):
        load_read_models(tmp_path)


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadModelError, match="FOLDLAKE_READ_MODELS_DIR"):
        load_read_models(tmp_path / "nowhere")
