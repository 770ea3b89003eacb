"""The names of columns: which one a name in a declaration means, and which names a declaration cannot have."""

import json
from pathlib import Path
from typing import Any

import pytest

from include.declarations.event_types.event_columns import (
    OFFSET,
    column_name,
    hidden_columns,
    resolved,
    short_names,
)
from include.declarations.event_types.event_schemas import event_schema
from include.declarations.kinds.route import Route
from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel, StateField
from include.errors import ReadModelError, SchemaError
from include.kafka.record_schema import RecordSchema

NUMBER = {"type": "long", "logicalType": "timestamp-millis"}


def event_type(name: str, *fields: str | dict[str, Any]) -> RecordSchema:
    declared = [field if isinstance(field, dict) else {"name": field, "type": "long"} for field in fields]
    return RecordSchema.parse(json.dumps({"type": "record", "name": name, "fields": declared}), "a test")


def test_a_field_hides_an_event_type_and_both_hide_a_column_of_kafkas_record() -> None:
    readers = (event_type("Rating", "RATING", "offset"), event_type("Key", "rating2", "RATING", "offset"))

    assert hidden_columns(readers) == ["event:Rating", "record:key", "record:offset"]
    assert {
        name: resolved(name, readers) for name in ("rating.x", "Offset", "KEY.x", "Partition", "record:KEY")
    } == {
        "rating.x": "rating.x",
        "Offset": "Offset",
        "KEY.x": "event:Key.x",
        "Partition": "record:partition",
        "record:KEY": "record:KEY",
    }
    assert column_name(OFFSET, readers) == "record:offset"


def test_nothing_is_hidden_by_a_field_that_another_event_type_lacks() -> None:
    readers = (event_type("Rating", "offset"), event_type("Review", "id"))

    assert hidden_columns(readers) == []
    assert short_names(readers)["offset"] == OFFSET
    assert column_name(OFFSET, readers) == "offset"


def read_model(*names: str, event_types: tuple[str, ...] = ("FundsAdded",)) -> ReadModel:
    return ReadModel(
        name="orders",
        source_topic="orders",
        event_types=event_types,
        key=lambda: None,  # type: ignore[arg-type, return-value]  # not called
        state=tuple(StateField(name, "long") for name in names),
        folds={1: dict},
    )


@pytest.mark.parametrize("name", ["key", "KEY", "event_count", "Event_Count", "occurred_ON"])
def test_a_state_field_with_the_name_of_a_column_of_every_record_is_refused(name: str) -> None:
    with pytest.raises(ReadModelError, match=f"state field {name}, but every state record has .*: rename"):
        read_model(name)


def test_state_fields_that_differ_only_by_case_are_refused() -> None:
    with pytest.raises(ReadModelError, match=r"state fields total and Total, .*: rename one"):
        read_model("total", "count", "Total")


def test_event_types_that_differ_only_by_case_are_refused() -> None:
    for declare in (
        lambda types: read_model("total", event_types=types),
        lambda types: Route(name="x", source_topic="a", output_topic="b", event_types=types),
    ):
        with pytest.raises(
            SchemaError, match=r"Event types Rating and rating of .* differ only by case: rename"
        ):
            declare(("Rating", "Review", "rating"))


NESTED = {
    "name": "at",
    "type": {"type": "record", "name": "Place", "fields": [{"name": n, "type": "int"} for n in "xX"]},
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("id", "ID"), "fields id and ID in Rating"),
        (("id", NESTED), "fields x and X in Place"),
        (
            ({"name": "all", "type": ["null", {"type": "array", "items": NESTED["type"]}]},),
            "fields x and X in Place",
        ),
        (({"name": "by", "type": {"type": "map", "values": NESTED["type"]}},), "fields x and X in Place"),
    ],
    ids=["top", "nested", "array", "map"],
)
def test_fields_of_a_record_that_differ_only_by_case_are_refused_with_the_file(
    tmp_path: Path, fields: tuple[str | dict[str, Any], ...], message: str
) -> None:
    file = tmp_path / "Rating.avsc"
    file.write_text(event_type("Rating", *fields).text)

    with pytest.raises(SchemaError, match=f"{file} has the {message}, which differ only by case: rename"):
        event_schema("Rating", (tmp_path,))


def test_fields_of_two_records_may_differ_only_by_case(tmp_path: Path) -> None:
    (tmp_path / "Rating.avsc").write_text(
        event_type("Rating", "X", {**NESTED, "name": "Place"} | {"type": "int"}).text
    )

    assert event_schema("Rating", (tmp_path,)).fields == ("X", "Place")


def test_event_types_of_one_topic_that_differ_only_by_case_are_refused(tmp_path: Path) -> None:
    for name in ("Rating", "RATING"):
        (tmp_path / f"{name}.avsc").write_text(event_type(name, {"name": "occurredOn", "type": NUMBER}).text)
        (tmp_path / f"{name.lower()}_{name[1]}.py").write_text(
            "from include.declarations.read_model import ReadModel, StateField\n"
            f"READ_MODEL = ReadModel(name='of-{name[1].lower()}-{name[1] == 'A'}'.lower(), source_topic='ratings', event_types=('{name}',),"
            " key=lambda: None, state=(StateField('n', 'long'),), folds={1: dict})\n"
        )

    with pytest.raises(SchemaError, match=r"Event types R\w+ and R\w+ of topic ratings differ only by case"):
        load_catalog((tmp_path,))
