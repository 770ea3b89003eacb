"""Modules of declarations are found in all folders; one that does not load, or declares what cannot work, is left out by itself."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from include.declarations.load import load_catalog, read_model
from include.errors import ReadModelError, UnknownReadModelError
from include.settings import CHECKOUT
from tests.support.declarations.renamed_balance import renamed_balance

SUPPORT = Path(__file__).parents[3] / "support"


def test_a_module_without_a_declaration_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "forgotten.py").write_text("")

    assert load_catalog((tmp_path,)).models.keys() == {"balance"}
    (failure,) = load_catalog((tmp_path,)).failures
    assert (failure.module, failure.file) == ("forgotten", str(tmp_path / "forgotten.py"))
    assert "declares nothing: give it a list `DECLARATIONS = " in failure.error


PURSE = renamed_balance("purse")


def test_additional_folder_is_loaded_only_if_given(tmp_path: Path) -> None:
    (tmp_path / "purse.py").write_text(PURSE)
    assert load_catalog((tmp_path,)).models.keys() == {"balance", "purse"}
    assert load_catalog().models.keys() == {"balance"}


def test_two_read_models_with_one_name_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(renamed_balance("balance"))
    with pytest.raises(ReadModelError, match="named 'balance'"):
        load_catalog((tmp_path,))


def package_of(tmp_path: Path, text: str) -> Path:
    package = tmp_path / "purse"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text(f"{text}\nNAME = READ_MODEL.name")
    return package


def test_package_is_reloaded_from_disk(tmp_path: Path) -> None:
    package_of(tmp_path, PURSE)
    before = read_model("purse", (tmp_path,))

    package_of(tmp_path, PURSE.replace("folds={1: ", "folds={2: {'amount': 'sum(amount)'}, 1: "))

    assert read_model("purse", (tmp_path,)).newest_fold_revision == 1
    assert read_model("purse", (tmp_path,), reload=True).newest_fold_revision == 2
    assert before.newest_fold_revision == 1


def test_package_that_cannot_be_reloaded_is_unchanged(tmp_path: Path) -> None:
    package_of(tmp_path, PURSE)
    before = read_model("purse", (tmp_path,))
    package_of(tmp_path, "READ_MODEL = broken")

    with pytest.raises(
        UnknownReadModelError, match=r"purse is left out: .*purse/model\.py:1: NameError: name 'broken'"
    ):
        read_model("purse", (tmp_path,), reload=True)

    assert read_model("purse", (tmp_path,)).folds is before.folds


def test_a_folder_that_is_not_a_package_is_left_out(tmp_path: Path) -> None:
    (package_of(tmp_path, "READ_MODEL = 1") / "__init__.py").unlink()

    assert load_catalog((tmp_path,)).models.keys() == {"balance"}
    (failure,) = load_catalog((tmp_path,)).failures
    assert str(failure) == (
        f"purse is left out: {tmp_path}/purse: it is not a package: add an empty file __init__.py"
    )


def test_module_with_a_duplicate_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "balance.py").write_text("READ_MODEL = 1")
    with pytest.raises(ReadModelError, match="balance has the name of another module"):
        load_catalog((tmp_path,))


def test_modules_of_one_name_in_two_folders_are_rejected(tmp_path: Path) -> None:
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        (folder / "purse.py").write_text(PURSE)

    with pytest.raises(ReadModelError, match="second/purse has the name of another module"):
        load_catalog((tmp_path / "first", tmp_path / "second"))


def test_a_module_beside_a_package_of_its_name_is_rejected(tmp_path: Path) -> None:
    package_of(tmp_path, PURSE)
    (tmp_path / "purse.py").write_text(PURSE.replace("purse", "bag"))

    with pytest.raises(ReadModelError, match="purse has the name of another module"):
        load_catalog((tmp_path,))


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

    assert load_catalog((tmp_path,)).models.keys() == {"balance", "purse"}
    assert load_catalog((tmp_path,)).models.keys() == {"balance", "purse"}
    (failure,) = load_catalog((tmp_path,)).failures
    assert (failure.module, failure.file, failure.line) == ("broken", str(tmp_path / "broken.py"), line)
    assert failure.error.startswith(error)
    with pytest.raises(
        UnknownReadModelError, match=r"Known read models: balance, purse\. broken is left out: "
    ):
        read_model("broken", (tmp_path,))


COIN = '{"type": "record", "name": "Coin", "fields": [{"name": "id", "type": %s}]}'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "Coin.avsc is not an Avro record schema (line 1, column 2: "),
        ('{"type": "record", "name": "Note", "fields": []}', "has a record named Note"),
        ("", "Coin.avsc is not an Avro record schema"),
        (COIN % '"strng"', "Coin.avsc is not a valid Avro schema (UnknownType('strng'))"),
        (COIN % '{"type": "array"}', "Coin.avsc is not a valid Avro schema (KeyError('items'))"),
        (None, "There is no schema of event type Coin"),
    ],
    ids=["json", "name", "empty", "type", "items", "missing"],
)
def test_a_read_model_whose_event_schema_is_broken_is_left_out(
    tmp_path: Path, text: str | None, error: str
) -> None:
    (tmp_path / "coins.py").write_text(PURSE.replace('"purse"', '"coins"').replace('"FundsAdded"', '"Coin"'))
    (tmp_path / "purse.py").write_text(PURSE)
    if text is not None:
        (tmp_path / "Coin.avsc").write_text(text)

    assert load_catalog((tmp_path,)).models.keys() == {"balance", "purse"}
    (failure,) = load_catalog((tmp_path,)).failures
    assert (failure.module, failure.file) == ("coins", str(tmp_path / "coins.py"))
    assert error in failure.error


def test_a_declaration_that_raises_another_error_is_left_out(tmp_path: Path) -> None:
    text = "from dataclasses import replace\nfrom include.read_models.balance.model import READ_MODEL as BALANCE\n"
    (tmp_path / "coins.py").write_text(f"{text}READ_MODEL = replace(BALANCE, name='coins', event_types=7)\n")

    assert load_catalog((tmp_path,)).models.keys() == {"balance"}
    (failure,) = load_catalog((tmp_path,)).failures
    assert (failure.module, failure.error) == ("coins", "TypeError: 'int' object is not iterable")


def test_only_the_module_of_a_package_that_declares_a_broken_event_is_left_out(tmp_path: Path) -> None:
    package = package_of(tmp_path, PURSE)
    table = "from include.declarations.event_table import EventTable\nEVENT_TABLE = EventTable('coins', 'coins', 'Coin')\n"
    (package / "coins.py").write_text(table)

    catalog = load_catalog((tmp_path,))
    assert catalog.models.keys() == {"balance", "purse"}
    assert not catalog.event_tables
    (failure,) = load_catalog((tmp_path,)).failures
    assert (failure.module, failure.file) == ("purse.coins", str(package / "coins.py"))


def test_only_the_broken_module_of_a_package_is_left_out(tmp_path: Path) -> None:
    package = package_of(tmp_path, PURSE)
    (package / "api.py").write_text("LOOKUPS = undefined_name\n")

    assert load_catalog((tmp_path,)).models.keys() == {"balance", "purse"}
    assert {api.model.name: api.paths for api in load_catalog((tmp_path,)).apis}["purse"] == []
    (failure,) = load_catalog((tmp_path,)).failures
    assert (failure.module, failure.file, failure.line) == ("purse.api", str(package / "api.py"), 1)


def test_what_reads_a_read_model_that_is_left_out_is_left_out_too(tmp_path: Path) -> None:
    shutil.copytree(SUPPORT / "read_models_with_emissions", tmp_path, dirs_exist_ok=True)
    (tmp_path / "savings.py").write_text("READ_MODEL = undefined_name\n")

    catalog = load_catalog((tmp_path,))

    assert (set(catalog.models), catalog.outputs) == ({"balance"}, {})


def test_error_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ReadModelError, match="FOLDLAKE_READ_MODELS_DIR"):
        load_catalog((tmp_path / "nowhere",))


def test_declarations_are_loaded_without_clients_that_take_long_to_import() -> None:
    slow = {"authlib", "confluent_kafka.schema_registry", "httpx", "pyspark", "redis"}
    code = f"import sys; from include.declarations.load import load_catalog; load_catalog(); print(sorted({slow} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
