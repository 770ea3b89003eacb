"""A read model's key must contain the entity by which its events are keyed: otherwise a key's events are in several partitions."""

import json

import pytest

from include.declarations.key_rule import require_entity
from include.errors import ReadModelError
from include.kafka.record_schema import KEY_PROPERTY, RecordSchema


def event_type(key_field: str | None) -> RecordSchema:
    schema = {"type": "record", "name": "OrderPlaced", "fields": [{"name": "orderId", "type": "string"}]}
    return RecordSchema.parse(json.dumps(schema | ({KEY_PROPERTY: key_field} if key_field else {})), "a test")


@pytest.mark.parametrize(
    "columns",
    [["orderId"], ["occurredOn", "orderId"], ["event:OrderPlaced.orderId"], ["record:key"], ["orderid"]],
    ids="+".join,
)
def test_a_key_with_the_entity_is_accepted(columns: list[str]) -> None:
    require_entity("orders-per-day", event_type("orderId"), "any", columns)


@pytest.mark.parametrize(
    "columns",
    [["occurredOn"], ["event:OrderShipped.orderId"], ["key"], ["orderIds"], ["id", "occurredOn"], []],
    ids="+".join,
)
def test_a_key_without_the_entity_is_rejected(columns: list[str]) -> None:
    with pytest.raises(ReadModelError, match="lacks orderId, by which OrderPlaced events are keyed"):
        require_entity("orders-per-day", event_type("orderId"), "any", columns)


def test_error_names_the_read_model_its_key_and_the_remedy() -> None:
    with pytest.raises(ReadModelError) as refused:
        require_entity(
            "orders-per-day", event_type("orderId"), "date_format(occurredOn, 'yyyy')", ["occurredOn"]
        )

    message = str(refused.value)
    assert (
        "The key of read model orders-per-day, date_format(occurredOn, 'yyyy'), is made of occurredOn"
        in message
    )
    assert "Add orderId to the key, or declare `rekey=True` in the read model" in message


def test_schema_without_a_key_property_is_not_checked() -> None:
    require_entity("orders-per-day", event_type(None), "any", ["occurredOn"])
