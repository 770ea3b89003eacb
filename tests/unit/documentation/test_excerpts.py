"""Excerpts of declarations on pages have the values of the declarations."""

import ast
import json

import pytest

import foldlake
from demo.systems.logs import browser_windows
from demo.systems.orders.order_location import READ_MODEL
from foldlake import ReadModel
from include.settings.systems import system_folder
from tests.support.documentation.page_blocks import Block, blocks

LEAVING = "docs/how-to/items-that-leave.md"
# The rest of a declaration, which an excerpt leaves out.
REST = ", ...)"
MODELS = {
    model.name: model for model in (READ_MODEL, *browser_windows.DECLARATIONS) if isinstance(model, ReadModel)
}
EXCERPTS = [block for page in ("docs/placements.md", LEAVING) for block in blocks(page, "python")]


def arguments(text: str) -> dict[str, object]:
    """Return the arguments of an excerpt with their values."""
    call = ast.parse(text.strip().replace(REST, ")"), mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    assert call.func.id == ReadModel.__name__
    return {
        str(one.arg): eval(ast.unparse(one.value), vars(foldlake).copy())  # noqa: S307 - code of our own docs
        for one in call.keywords
    }


@pytest.mark.parametrize("block", EXCERPTS, ids=lambda block: block.place)
def test_an_excerpt_has_the_values_of_the_declaration(block: Block) -> None:
    shown = arguments(block.text)

    assert len(shown) > 1
    model = MODELS[str(shown["name"])]
    assert {name: getattr(model, name) for name in shown} == shown


def test_the_excerpt_of_a_schema_has_the_values_of_the_file() -> None:
    (block,) = blocks(LEAVING, "json")
    file = system_folder("orders") / "schemas" / "OrderLocation.avsc"
    whole = json.loads(file.read_text(encoding="utf-8"))
    shown = json.loads(block.text)

    assert shown.pop("fields") == []
    assert {name: whole[name] for name in shown} == shown
