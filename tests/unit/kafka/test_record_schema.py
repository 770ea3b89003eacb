"""Avro schemas are parsed with their names, or rejected with an error that names their origin."""

import json
from pathlib import Path

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.errors import SchemaError
from include.kafka.record_schema import RecordSchema, schema_file


def test_event_schema_has_its_full_name() -> None:
    schema = event_schema("FundsWithdrawn")
    assert (schema.name, schema.full_name) == ("FundsWithdrawn", "foldlake.events.FundsWithdrawn")
    assert schema.fields == ("id", "occurredOn", "customerId", "amount")
    assert schema.key_field == "customerId"


def test_name_with_dots_includes_its_namespace() -> None:
    schema = RecordSchema.parse('{"type":"record","name":"a.b.C","fields":[]}', "test")
    assert (schema.name, schema.full_name) == ("C", "a.b.C")


def test_reader_schema_is_renamed_like_the_writer_schema() -> None:
    writer = RecordSchema.parse(
        '{"type":"record","name":"FundsAdded","namespace":"shop","fields":[]}', "test"
    )
    renamed = event_schema("FundsAdded").renamed_like(writer)
    assert renamed.full_name == "shop.FundsAdded"
    assert json.loads(renamed.text)["fields"] == event_schema("FundsAdded").parsed()["fields"]


@pytest.mark.parametrize("text", ["", "[]", '"string"', '{"type":"enum","name":"E","symbols":[]}'])
def test_text_that_is_not_a_record_schema_is_rejected(text: str) -> None:
    with pytest.raises(SchemaError, match=r"^subject x is not an Avro record schema"):
        RecordSchema.parse(text, "subject x")


def test_error_names_a_missing_file() -> None:
    with pytest.raises(SchemaError, match=r"nowhere\.avsc cannot be read"):
        schema_file(Path("nowhere.avsc"))
