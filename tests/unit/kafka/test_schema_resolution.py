"""Types of a writer's schema find the reader's types by Avro's rules, as its Java library applies them."""

from typing import Any

import pytest

from include.errors import SchemaError
from include.kafka.avro.avro_types import AvroType, avro_type
from include.kafka.avro.schema_resolution import (
    is_readable,
    is_same_union,
    matching_branch,
    with_reader_names,
)

FIXED = {"type": "fixed", "name": "Fixed", "size": 3}
ENUM = {"type": "enum", "name": "Enum", "symbols": ["A"]}
Avro = Any


def record(name: str, *fields: str, aliases: tuple[str, ...] = (), **of_fields: Avro) -> dict[str, Avro]:
    declared = [{"name": field, "type": "int"} for field in fields]
    declared += [{"name": field, "type": kind} for field, kind in of_fields.items()]
    return {"type": "record", "name": name, "aliases": list(aliases), "fields": declared}


def names(one: AvroType) -> list[str]:
    return [declared.name for declared in one.fields]


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("int", "double"),
        ("long", "float"),
        ("string", "bytes"),
        ("bytes", "string"),
        (record("Old", "a"), record("New", "a")),
        (record("A", "a", "b"), record("A", "a")),
        (FIXED | {"name": "other.Fixed"}, FIXED),
        ("int", ["null", "long"]),
        (["null", "int"], "int"),
    ],
    ids=str,
)
def test_type_is_readable(writer: Avro, reader: Avro) -> None:
    assert is_readable(avro_type(writer), avro_type(reader))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("long", "int"),
        ("double", "float"),
        ("int", "string"),
        (record("A", "a"), record("A", "a", "b")),
        (FIXED | {"size": 4}, FIXED),
        (FIXED, "bytes"),
        (ENUM | {"name": "Renamed"}, ENUM),
        ("string", ENUM),
        ("string", ["null", "int"]),
    ],
    ids=str,
)
def test_type_is_not_readable(writer: Avro, reader: Avro) -> None:
    assert not is_readable(avro_type(writer), avro_type(reader))


@pytest.mark.parametrize(
    ("writer", "union", "branch"),
    [
        ("int", ["null", "long", "int"], 2),
        ("int", ["null", "float", "long"], 1),
        ("string", ["null", "bytes"], 1),
        (record("B", "a"), [record("A", "a"), record("B", "a")], 1),
        # By its fields, if none has its name; by its name without the namespace first.
        (record("Other", "b"), [record("A", "a"), record("B", "b")], 1),
        (record("x.B", "a"), [record("A", "a"), record("B", "a")], 1),
        (ENUM | {"name": "x.Enum"}, ["null", ENUM], None),
        ("boolean", ["null", "int"], None),
    ],
    ids=str,
)
def test_branch_of_a_union(writer: Avro, union: Avro, branch: int | None) -> None:
    assert matching_branch(avro_type(writer), avro_type(union)) == branch


def test_unions_are_the_same_whatever_their_namespaces_and_logical_types() -> None:
    date = {"type": "int", "logicalType": "date"}
    assert is_same_union(avro_type([record("x.A", "a"), "int"]), avro_type([record("A", "a"), date]))
    assert not is_same_union(avro_type(["int", "null"]), avro_type(["null", "int"]))
    assert not is_same_union(avro_type([record("A", "a"), "int"]), avro_type([record("A", "b"), "int"]))


def test_aliases_rename_the_writers_types_and_fields_at_every_depth() -> None:
    inner = record("Inner", "price", aliases=("OldInner",))
    inner["fields"][0]["aliases"] = ["cost"]
    reader = avro_type(record("Event", lines={"type": "array", "items": inner}))
    writer = avro_type(record("Event", lines={"type": "array", "items": record("OldInner", "cost")}))

    renamed = with_reader_names(writer, reader).fields[0].type.items

    assert renamed is not None
    assert (renamed.name, names(renamed)) == ("Inner", ["price"])


def test_alias_that_names_two_fields_alike_is_refused() -> None:
    reader = record("Event", "price")
    reader["fields"][0]["aliases"] = ["cost"]
    with pytest.raises(SchemaError, match="Aliases give one name to several fields of Event"):
        with_reader_names(avro_type(record("Event", "price", "cost")), avro_type(reader))
