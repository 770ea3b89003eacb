"""A read model's declaration is validated when it is created, and determines its state record."""

import json
import shutil
from pathlib import Path

import pytest

from include.declarations.api import load_apis
from include.declarations.catalog import load_catalog
from include.declarations.modules import load_modules
from include.declarations.read_model import (
    POSITION_FIELDS,
    ReadModel,
    StateField,
    decimal_type,
    load_read_models,
    read_model,
)
from include.errors import ReadModelError, UnknownReadModelError
from include.kafka.record_schema import ItemLifetime
from include.settings.systems import system_folder

SUPPORT = Path(__file__).parents[2] / "support"


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


def test_a_module_without_a_declaration_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "forgotten.py").write_text("")

    assert load_read_models((tmp_path,)).keys() == {"balance"}
    (failure,) = load_modules((tmp_path,)).failures
    assert (failure.module, failure.file) == ("forgotten", str(tmp_path / "forgotten.py"))
    assert "has no READ_MODEL, ROUTE" in failure.error


PURSE = (
    Path("include/read_models/balance/model.py")
    .read_text(encoding="utf-8")
    .replace('name="balance"', 'name="purse"')
)


def test_additional_folder_is_loaded_only_if_given(tmp_path: Path) -> None:
    (tmp_path / "purse.py").write_text(PURSE)
    assert load_read_models((tmp_path,)).keys() == {"balance", "purse"}
    assert load_read_models().keys() == {"balance"}


def test_two_read_models_with_one_name_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(
        Path("include/read_models/balance/model.py").read_text(encoding="utf-8")
    )
    with pytest.raises(ReadModelError, match="named 'balance'"):
        load_read_models((tmp_path,))


def package_of(tmp_path: Path, text: str) -> Path:
    package = tmp_path / "purse"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text(f"{text}\nNAME = READ_MODEL.name")
    return package


def test_package_is_reloaded_from_disk(tmp_path: Path) -> None:
    text = Path("include/read_models/balance/model.py").read_text(encoding="utf-8")
    text = text.replace('name="balance"', 'name="purse"')
    package_of(tmp_path, text)
    before = read_model("purse", (tmp_path,))

    package_of(tmp_path, text.replace("folds={1: funds}", "folds={1: funds, 2: funds}"))

    assert read_model("purse", (tmp_path,)).newest_fold_revision == 1
    assert read_model("purse", (tmp_path,), reload=True).newest_fold_revision == 2
    assert before.newest_fold_revision == 1


def test_package_that_cannot_be_reloaded_is_unchanged(tmp_path: Path) -> None:
    text = Path("include/read_models/balance/model.py").read_text(encoding="utf-8")
    text = text.replace('name="balance"', 'name="purse"')
    package_of(tmp_path, text)
    before = read_model("purse", (tmp_path,))
    package_of(tmp_path, "READ_MODEL = broken")

    with pytest.raises(
        UnknownReadModelError, match=r"purse is left out: .*purse/model\.py:1: NameError: name 'broken'"
    ):
        read_model("purse", (tmp_path,), reload=True)

    assert read_model("purse", (tmp_path,)).folds is before.folds


def test_a_folder_that_is_not_a_package_is_left_out(tmp_path: Path) -> None:
    (package_of(tmp_path, "READ_MODEL = 1") / "__init__.py").unlink()

    assert load_read_models((tmp_path,)).keys() == {"balance"}
    (failure,) = load_modules((tmp_path,)).failures
    assert str(failure) == (
        f"purse is left out: {tmp_path}/purse: it is not a package: add an empty file __init__.py"
    )


def test_module_with_a_duplicate_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "balance.py").write_text("READ_MODEL = 1")
    with pytest.raises(ReadModelError, match="balance has the name of another module"):
        load_read_models((tmp_path,))


def test_modules_of_one_name_in_two_folders_are_rejected(tmp_path: Path) -> None:
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        (folder / "purse.py").write_text(PURSE)

    with pytest.raises(ReadModelError, match="second/purse has the name of another module"):
        load_read_models((tmp_path / "first", tmp_path / "second"))


def test_a_module_beside_a_package_of_its_name_is_rejected(tmp_path: Path) -> None:
    package_of(tmp_path, PURSE)
    (tmp_path / "purse.py").write_text(PURSE.replace("purse", "bag"))

    with pytest.raises(ReadModelError, match="purse has the name of another module"):
        load_read_models((tmp_path,))


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("\n\nREAD_MODEL = undefined_name\n", 3, "NameError: name 'undefined_name' is not defined"),
        ("import nothing.at_all\n", 1, "ModuleNotFoundError: No module named 'nothing'"),
        ("\nREAD_MODEL = (\n", 2, "SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("READ_MODEL = 'purse'\n", 0, "READ_MODEL of include.read_models.broken must be of type ReadModel."),
    ],
    ids=["name", "import", "syntax", "exit", "type"],
)
def test_a_module_that_does_not_load_is_left_out_with_file_and_line(
    tmp_path: Path, text: str, line: int, error: str
) -> None:
    (tmp_path / "broken.py").write_text(text)
    (tmp_path / "purse.py").write_text(PURSE)

    assert load_read_models((tmp_path,)).keys() == {"balance", "purse"}
    assert load_catalog((tmp_path,)).models.keys() == {"balance", "purse"}
    (failure,) = load_modules((tmp_path,)).failures
    assert (failure.module, failure.file, failure.line) == ("broken", str(tmp_path / "broken.py"), line)
    assert failure.error.startswith(error)
    with pytest.raises(
        UnknownReadModelError, match=r"Known read models: balance, purse\. broken is left out: "
    ):
        read_model("broken", (tmp_path,))


def test_only_the_broken_module_of_a_package_is_left_out(tmp_path: Path) -> None:
    package = package_of(tmp_path, PURSE)
    (package / "api.py").write_text("LOOKUPS = undefined_name\n")

    assert load_read_models((tmp_path,)).keys() == {"balance", "purse"}
    assert {api.model.name: api.paths for api in load_apis((tmp_path,))}["purse"] == []
    (failure,) = load_modules((tmp_path,)).failures
    assert (failure.module, failure.file, failure.line) == ("purse.api", str(package / "api.py"), 1)


def test_what_reads_a_read_model_that_is_left_out_is_left_out_too(tmp_path: Path) -> None:
    shutil.copytree(SUPPORT / "read_models_with_emissions", tmp_path, dirs_exist_ok=True)
    (tmp_path / "savings.py").write_text("READ_MODEL = undefined_name\n")

    catalog = load_catalog((tmp_path,))

    assert (set(catalog.models), dict(catalog.emissions)) == ({"balance"}, {})


def test_error_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ReadModelError, match="FOLDLAKE_READ_MODELS_DIR"):
        load_read_models((tmp_path / "nowhere",))


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
from include.systems.orders.order_location.model import READ_MODEL as ORDERS
READ_MODEL = replace(ORDERS, name="{name}", source_topic="{topic}")
"""
WRITING = """
from include.declarations.route import Route
ROUTE = Route(name="orders", source_topic="orders", event_types=("OrderLocation",), output_topic="placed-orders")
"""


def test_items_that_end_are_read_from_the_producers_topic(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text(ENDING.format(name="ending", topic="placed-orders"))
    (tmp_path / "writing.py").write_text(WRITING)
    folders = (tmp_path, system_folder("orders"))

    with pytest.raises(ReadModelError, match="route orders writes placed-orders"):
        load_read_models(folders)


def test_order_location_is_declared() -> None:
    model = read_model("order-location", (system_folder("orders"),))
    assert model.lifetime == ItemLifetime("placedOn", 4)
