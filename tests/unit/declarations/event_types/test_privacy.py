"""A public output is never made of a personal field, however deep it stands in the event."""

import json

import pytest

from include.declarations.event_types.privacy import Privacy, field_classes, path_class, require_privacy
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

PERSONAL = {"foldlake.privacy": "personal"}
ADDRESS = {
    "type": "record",
    "name": "Address",
    "fields": [
        {"name": "street", "type": "string"},
        {"name": "city", "type": "string", "foldlake.privacy": "public"},
    ],
}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "code", "type": "string"}, {"name": "note", "type": ["null", "string"]} | PERSONAL],
}
INVOICE = RecordSchema.parse(
    json.dumps(
        {
            "type": "record",
            "name": "Invoice",
            "foldlake.key": "store",
            "fields": [
                {"name": "store", "type": "string"},
                {"name": "card", "type": ["null", "string"]} | PERSONAL,
                {"name": "address", "type": ["null", ADDRESS]} | PERSONAL,
                {"name": "lines", "type": {"type": "array", "items": LINE}},
            ],
        }
    ),
    "test",
)


def output(privacy: str | None) -> RecordSchema:
    field = {"name": "out", "type": "string"} | ({} if privacy is None else {"foldlake.privacy": privacy})
    return RecordSchema.parse(json.dumps({"type": "record", "name": "Out", "fields": [field]}), "test")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (["store"], Privacy.PUBLIC),
        (["card"], Privacy.PERSONAL),
        (["CARD"], Privacy.PERSONAL),
        (["address"], Privacy.PERSONAL),
        (["address", "street"], Privacy.PERSONAL),
        (["address", "city"], Privacy.PUBLIC),
        (["lines"], Privacy.PERSONAL),
        (["lines", "code"], Privacy.PUBLIC),
        (["lines", "note"], Privacy.PERSONAL),
        (["unknown"], Privacy.PUBLIC),
    ],
)
def test_class_of_a_path(path: list[str], expected: Privacy) -> None:
    assert path_class(INVOICE, path) is expected


@pytest.mark.parametrize(
    "column", ["card", "Invoice.card", "address", "Invoice.address.street", "lines.note", "value", "Invoice"]
)
def test_a_public_field_is_not_made_of_a_personal_one(column: str) -> None:
    with pytest.raises(ReadModelError, match=f"Route trend makes the public field out of Out of {column}"):
        require_privacy("Route trend", output(None), [INVOICE], {"out": ["store", column]})
    for allowed in ("personal", "pseudonym"):
        require_privacy("Route trend", output(allowed), [INVOICE], {"out": ["store", column]})


@pytest.mark.parametrize("column", ["store", "key", "Invoice.address.city", "lines.code", "occurredOn"])
def test_a_public_field_is_made_of_public_ones(column: str) -> None:
    require_privacy("Route trend", output(None), [INVOICE], {"out": [column]})


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(
        ReadModelError, match=r"foldlake\.privacy of out in Out\.avsc is 'secret'; allowed: public"
    ):
        field_classes(output("secret"))
