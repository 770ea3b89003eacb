"""A module lists its declarations, of any kinds; the names of earlier releases are read with a warning."""

import logging
from pathlib import Path

import pytest

from include.declarations.load import load_catalog
from tests.support.declarations.refusal import refusal

IMPORTS = """
from dataclasses import replace

from include.declarations.api import Lookup
from include.declarations.event_table import EventTable
from include.declarations.kinds.route import Route
from include.read_models.balance.model import READ_MODEL as BALANCE

PURSE = replace(BALANCE, name="purse")
LOOKUP = Lookup("/api/purses.get", "purse", ("amount",))
ROUTE = Route("copies", "balance", ("FundsAdded",), "copies")
TABLE = EventTable("copies", "copies", "FundsAdded")
"""


def declare(folder: Path, text: str, name: str = "purse.py") -> None:
    (folder / name).write_text(f"{IMPORTS}{text}\n", encoding="utf-8")


def test_one_list_has_declarations_of_all_kinds(tmp_path: Path) -> None:
    declare(tmp_path, "DECLARATIONS = [PURSE, LOOKUP, ROUTE, TABLE]")

    catalog = load_catalog((tmp_path,))

    assert catalog.failures == ()
    assert (set(catalog.models), set(catalog.routes)) == ({"balance", "purse"}, {"copies"})
    assert catalog.event_tables.keys() == {"copies"}
    assert {api.model.name: api.paths for api in catalog.apis}["purse"] == ["/api/purses.get"]


def test_a_name_of_an_earlier_release_beside_the_list_is_only_a_variable(tmp_path: Path) -> None:
    declare(tmp_path, "DECLARATIONS = [PURSE]")

    assert load_catalog((tmp_path,)).routes == {}


def test_a_declaration_that_two_modules_of_a_package_list_counts_once(tmp_path: Path) -> None:
    package = tmp_path / "purses"
    package.mkdir()
    (package / "__init__.py").touch()
    declare(package, "DECLARATIONS = [PURSE, LOOKUP, ROUTE]", "model.py")
    (package / "again.py").write_text("from include.read_models.purses.model import DECLARATIONS\n")

    catalog = load_catalog((tmp_path,))

    assert catalog.failures == ()
    assert catalog.routes.keys() == {"copies"}


def test_the_names_of_earlier_releases_are_read_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    declare(tmp_path, "READ_MODEL, LOOKUPS = PURSE, (LOOKUP,)", "old_purse.py")

    with caplog.at_level(logging.WARNING):
        catalog = load_catalog((tmp_path,))
        load_catalog((tmp_path,))

    assert (set(catalog.models), set(catalog.routes)) == ({"balance", "purse"}, {"copies"})
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith(f"{tmp_path / 'old_purse.py'} assigns READ_MODEL and ROUTE and LOOKUPS: list")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("DECLARATIONS = PURSE", "DECLARATIONS of include.read_models.purse must be a list"),
        (
            "DECLARATIONS = [PURSE, 'purse']",
            "has 'purse', which is no declaration: use ReadModel, Lookup,",
        ),
        ("DECLARATIONS = [PURSE, BALANCE]", "declares the read models purse and balance: give each"),
        ("DECLARATIONS = [LOOKUP]", "declares a Lookup, but no read model"),
        ("DECLARATIONS = []", "Module purse declares nothing"),
    ],
    ids=["no list", "other type", "two models", "no model", "empty"],
)
def test_a_list_that_cannot_be_read_is_an_error_that_says_why(tmp_path: Path, text: str, error: str) -> None:
    declare(tmp_path, text)

    assert error in refusal(tmp_path)


def test_a_folder_of_the_earlier_form_declares_the_same(tmp_path: Path) -> None:
    """The fold of an unchanged rule is the same function, so that no version is built again."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, text in (
        (old, "READ_MODEL = PURSE\nEVENT_TABLE = TABLE"),
        (new, "DECLARATIONS = [PURSE, ROUTE, TABLE]"),
    ):
        folder.mkdir()
        declare(folder, text)

    before, after = load_catalog((old,)), load_catalog((new,))

    assert before.models["purse"] == after.models["purse"]
    assert (before.routes, before.event_tables) == (after.routes, after.event_tables)
