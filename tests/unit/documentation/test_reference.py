"""The pages of docs/reference are those that the code gives, and their tables miss nothing."""

import re

import pytest
import typer.main

from cli.app import app
from cli.documentation.reference.metrics_page import FOLDER, metric_calls
from cli.documentation.reference.pages import pages, path_of
from cli.documentation.reference.settings_page import listed_settings
from include.errors import FoldlakeError
from include.lake.sql_tables import HISTORY, HISTORY_COLUMNS
from include.settings import CHECKOUT, PREFIX, VARIABLES
from stack.provisioning.command_names import COMMANDS

PAGES = pages(typer.main.get_command(app))
HOW_TO_UPDATE = "docs/reference/{}.md is not what the code gives: run ./foldlake docs --update-reference"


@pytest.fixture(scope="module")
def metrics() -> set[str]:
    """Return the names of all metrics in the code, as Prometheus shows them."""
    return {call.name for module in FOLDER.glob("*.py") for call in metric_calls(module)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_that_of_the_code(name: str) -> None:
    path = path_of(name)

    assert path.exists(), HOW_TO_UPDATE.format(name)
    assert path.read_text(encoding="utf-8") == PAGES[name](), HOW_TO_UPDATE.format(name)


def test_no_page_is_left_of_a_generator_that_is_gone() -> None:
    assert {path.stem for path in path_of("settings").parent.glob("*.md")} == {*PAGES, "README"}


def test_the_page_of_settings_has_every_setting() -> None:
    shown = re.findall(rf"^\| `({PREFIX}\w+)` \|", path_of("settings").read_text(), re.MULTILINE)

    assert sorted(shown) == sorted(f"{PREFIX}{name.upper()}" for name in VARIABLES)


def test_a_setting_without_a_comment_is_an_error() -> None:
    with pytest.raises(FoldlakeError, match=r"FOLDLAKE_B in \.env\.example has no comment"):
        list(listed_settings("# -- Group ----\n# What A does\nFOLDLAKE_A=1\nFOLDLAKE_B=2\n"))


def test_the_page_of_commands_has_every_command() -> None:
    shown = re.findall(r"^## (.+)$", path_of("commands").read_text(), re.MULTILINE)

    assert shown == list(COMMANDS)


def test_the_page_of_metrics_has_every_metric_of_the_code(metrics: set[str]) -> None:
    text = path_of("metrics").read_text(encoding="utf-8")
    named = {
        name
        for module in (CHECKOUT / "query_api").rglob("*.py")
        for name in re.findall(r'"(foldlake_[a-z_]+)"', module.read_text(encoding="utf-8"))
    }

    assert {name for name in named if name not in metrics and f"{name}_total" not in metrics} == set()
    assert {name for name in metrics if f"| `{name}` |" not in text} == set()


def test_the_columns_of_a_history_are_those_of_its_view() -> None:
    assert re.findall(r" AS (\w+)[,\n]", HISTORY.partition("FROM (")[0]) == list(HISTORY_COLUMNS)
