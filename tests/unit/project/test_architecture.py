"""The packages: docs/packages.md names every folder of code, in the order of the contracts, and the contracts hold."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from include.settings import CHECKOUT

PAGE = (CHECKOUT / "docs" / "packages.md").read_text(encoding="utf-8")
# The first cell of a table's row: a folder, ending in a slash.
PACKAGE = re.compile(r"^\| `([\w/]+)/` \|", re.MULTILINE)
MAX_LINES = 300
MAX_MODULES = 15
# One file per command.
UNLIMITED_FOLDERS = {"cli"}
# One folder per benchmark, read model, system, backend or data set: the page describes their common structure, and need not list each.
EXTENSIBLE_PACKAGES = {
    "benchmarks",
    "include/read_models",
    "demo/systems",
    "demo/systems/logs",
    "demo/systems/orders",
    "demo/systems/pos",
    "query_api/store",
    "demo",
}


def modules() -> list[Path]:
    """Return the relative path of every Python file in the checkout, including uncommitted files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "foldlake"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (CHECKOUT / name).is_file()]


def folders() -> set[str]:
    """Return every folder with modules; for tests, only the top folder."""
    inside = {module.parent for module in modules()} - {Path()}
    return {"tests" if folder.parts[0] == "tests" else str(folder) for folder in inside}


def packages() -> list[str]:
    return PACKAGE.findall(PAGE)


def linter_settings() -> dict[str, Any]:
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    settings: dict[str, Any] = tomllib.loads(text)["tool"]["importlinter"]
    return settings


def contract(contract_id: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in linter_settings()["contracts"] if c["id"] == contract_id)
    return found


def layered(contract_id: str) -> list[str]:
    """Return the members of a contract's layers, top down, without the marks for optional and independent members."""
    return [
        name.strip(" ()") for layer in contract(contract_id)["layers"] for name in re.split(r"[|:]", layer)
    ]


def imports_at_module_level(path: Path) -> Iterator[str]:
    """Yield the modules that a module imports at its top level."""
    for statement in ast.parse((CHECKOUT / path).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Import):
            yield from (name.name for name in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module


def test_the_page_lists_every_folder_of_code() -> None:
    described = Counter(packages())
    # A package may contain only further packages, and no module.
    existing = folders() | {str(parent) for folder in folders() for parent in Path(folder).parents} - {"."}

    undescribed = folders() - set(described)

    assert {
        package for package in undescribed if str(Path(package).parent) not in EXTENSIBLE_PACKAGES
    } == set()
    assert set(described) - existing == set()
    assert [package for package, times in described.items() if times > 1] == []


def test_the_page_lists_the_checkout_in_the_order_of_its_layers() -> None:
    assert [package for package in packages() if "/" not in package] == layered("checkout")


def test_the_page_lists_include_in_the_order_of_its_layers() -> None:
    described = [
        package.removeprefix("include/") for package in packages() if re.fullmatch(r"include/\w+", package)
    ]

    assert described == [name for name in layered("include") if (CHECKOUT / "include" / name).is_dir()]


def test_the_page_lists_every_single_file_module_of_include() -> None:
    files = {m.name for m in modules() if m.parent == Path("include")} - {"__init__.py"}

    assert {name for name in files if f"`{name}`" not in PAGE} == set()


def test_the_contracts_cover_every_folder_of_the_checkout() -> None:
    top = {folder.partition("/")[0] for folder in folders()}

    assert set(linter_settings()["root_packages"]) == top
    assert set(layered("checkout")) == top
    # DAGs are single files that Airflow loads, not a package.
    assert set(contract("cycles")["ancestors"]) == top - {"dags"}


def test_no_import_goes_up_and_no_folders_import_each_other() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache"], cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_is_long() -> None:
    long = {str(module): lines for module in modules() if (lines := line_count(module)) > MAX_LINES}

    assert long == {}


def line_count(module: Path) -> int:
    return len((CHECKOUT / module).read_text(encoding="utf-8").splitlines())


def test_no_folder_is_crowded() -> None:
    beside = Counter(str(module.parent) for module in modules() if module.name != "__init__.py")

    assert {
        folder: number
        for folder, number in beside.items()
        if number > MAX_MODULES and folder not in UNLIMITED_FOLDERS
    } == {}


@pytest.mark.parametrize("folder", ["include/read_models", "demo/systems", "tests/support/read_models"])
def test_read_models_are_loaded_without_spark(folder: str) -> None:
    found = [m for m in modules() if m.is_relative_to(folder)]

    assert found
    assert [str(m) for m in found if any(i.startswith("pyspark") for i in imports_at_module_level(m))] == []
