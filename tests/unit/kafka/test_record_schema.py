"""Avro schemas are parsed with their names, or rejected with an error that names their origin."""

import json
from pathlib import Path

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.errors import SchemaError
from include.kafka.record_schema import ItemLifetime, RecordSchema, schema_file


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


def test_renamed_schema_has_its_own_types_in_the_writers_namespace() -> None:
    part = {"type": "record", "name": "Part", "fields": [], "aliases": ["shop.Old"]}
    fields = [
        {"name": "first", "type": part},
        {"name": "second", "type": ["null", "shop.Part"]},
        {"name": "third", "type": {"type": "array", "items": "shop.Part"}},
        {"name": "other", "type": {"type": "fixed", "name": "else.Fixed", "size": 1}},
    ]
    reader = {"type": "record", "name": "Event", "namespace": "shop", "fields": fields}
    writer = RecordSchema.parse('{"type":"record","name":"Event","namespace":"web","fields":[]}', "test")

    first, second, third, other = (
        RecordSchema.parse(json.dumps(reader), "test").renamed_like(writer).parsed()["fields"]
    )

    assert first["type"]["aliases"] == ["web.Old"]
    assert second["type"] == ["null", "web.Part"]
    assert third["type"]["items"] == "web.Part"
    assert other["type"]["name"] == "else.Fixed"


@pytest.mark.parametrize("text", ["", "[]", '"string"', '{"type":"enum","name":"E","symbols":[]}'])
def test_text_that_is_not_a_record_schema_is_rejected(text: str) -> None:
    with pytest.raises(SchemaError, match=r"^subject x is not an Avro record schema"):
        RecordSchema.parse(text, "subject x")


def test_error_names_a_missing_file() -> None:
    with pytest.raises(SchemaError, match=r"nowhere\.avsc cannot be read"):
        schema_file(Path("nowhere.avsc"))


def with_lifetime(lifetime: object, of_type: object = None) -> str:
    time = of_type or {"type": "long", "logicalType": "timestamp-millis"}
    fields = [{"name": "placedOn", "type": time}]
    return json.dumps({"type": "record", "name": "O", "foldlake.lifetime": lifetime, "fields": fields})


def test_lifetime_is_read() -> None:
    schema = RecordSchema.parse(with_lifetime({"created": "placedOn", "hours": 4}), "test")
    assert schema.lifetime == ItemLifetime("placedOn", 4)


@pytest.mark.parametrize(
    "lifetime",
    [
        {},
        "4 hours",
        {"created": "placedOn"},
        {"created": "absent", "hours": 4},
        {"created": "placedOn", "hours": 0},
        {"created": "placedOn", "hours": True},
        {"created": "placedOn", "hours": 1.5},
        {"created": "placedOn", "hours": 366 * 24 + 1},
        {"created": "placedOn", "hours": 4, "minutes": 5},
    ],
    ids=str,
)
def test_lifetime_that_cannot_be_kept_is_rejected(lifetime: object) -> None:
    with pytest.raises(SchemaError, match=r"foldlake.lifetime of test .* a whole number from 1 to 8784"):
        RecordSchema.parse(with_lifetime(lifetime), "test")


@pytest.mark.parametrize(
    "avro_type",
    [
        "long",
        ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        {"type": "long", "logicalType": "timestamp-nanos"},
    ],
)
def test_lifetime_begins_with_a_time(avro_type: object) -> None:
    with pytest.raises(SchemaError, match="a field of type timestamp-millis or -micros, not nullable"):
        RecordSchema.parse(with_lifetime({"created": "placedOn", "hours": 4}, avro_type), "test")
