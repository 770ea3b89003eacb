"""Avro schemas on pages are valid, and those of the code, which they show in short."""

import json
from pathlib import Path
from typing import Any

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.event_types.privacy import Privacy, field_classes
from include.kafka.record_schema import RecordSchema
from include.settings import CHECKOUT
from tests.support.documentation.page_blocks import Block, blocks, pages

JSON = [block for page in pages() for block in blocks(page, "json")]
EVENT_TYPES = [block for block in JSON if '"type": "record"' in block.text]
FIELDS = [block for block in JSON if block.text.startswith("{") and "foldlake.privacy" in block.text]


def of_the_code(name: str) -> dict[str, Any]:
    """Return the only schema of this name, without descriptions."""
    folders = ("include/read_models", "demo/systems", "tests/support")
    (found,) = (path for folder in folders for path in (CHECKOUT / folder).rglob(f"schemas/{name}.avsc"))
    schema = json.loads(found.read_text(encoding="utf-8"))
    schema["fields"] = [without_doc(field) for field in schema["fields"]]
    return without_doc(schema)


def without_doc(node: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != "doc"}


def written(folder: Path, schema: dict[str, Any]) -> RecordSchema:
    """Return a schema that a user has written into a folder, under a name that the checkout does not have."""
    renamed = schema | {"name": f"{schema['name']}OfThePage"}
    (folder / f"{renamed['name']}.avsc").write_text(json.dumps(renamed), encoding="utf-8")
    return event_schema(renamed["name"], (folder,))


def test_pages_show_event_types_and_a_field() -> None:
    assert len(EVENT_TYPES) > 1
    assert FIELDS


@pytest.mark.parametrize("block", EVENT_TYPES, ids=lambda block: block.place)
def test_an_event_type_of_a_page_is_valid_and_that_of_the_code(tmp_path: Path, block: Block) -> None:
    schema = json.loads(block.text)
    shown = of_the_code(schema["name"])
    fields = schema.pop("fields")

    assert shown | schema == shown
    assert [field for field in fields if field not in shown["fields"]] == []
    # A page may leave out what it does not describe.
    complete = shown | {"fields": fields or shown["fields"]}
    assert written(tmp_path, complete).key_field == schema["foldlake.key"]


@pytest.mark.parametrize("block", FIELDS, ids=lambda block: block.place)
def test_a_field_of_a_page_is_valid_in_an_event_type(tmp_path: Path, block: Block) -> None:
    field = json.loads(block.text)
    schema = of_the_code("FundsAdded")
    schema["fields"].append(field)

    assert field_classes(written(tmp_path, schema))[field["name"]] is Privacy.PSEUDONYM
