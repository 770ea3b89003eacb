"""References of a schema are resolved; one that cannot be resolved concerns its schema's id only."""

import json
import logging
from collections.abc import Iterator

import pytest

from include.errors import RegistryUnavailableError
from include.kafka.schema_registry import SchemaRegistry
from include.settings import RegistryConnection
from tests.support.http.played_registry import (
    add_referenced,
    add_schema,
    add_subject,
    coded,
    record,
    reference,
)
from tests.support.http.played_server import HTML, PlayedServer, Reply, played_server

SOLD = record("shop.Sold", {"name": "id", "type": "string"})


@pytest.fixture
def server() -> Iterator[PlayedServer]:
    with played_server() as server:
        yield server


@pytest.fixture
def registry(server: PlayedServer) -> SchemaRegistry:
    return SchemaRegistry(RegistryConnection(server.url))


def test_references_are_resolved_through_others(server: PlayedServer, registry: SchemaRegistry) -> None:
    add_schema(
        server,
        1,
        record("Sold", {"name": "a", "type": "shop.Price"}, {"name": "b", "type": ["null", "shop.Price"]}),
        references=[reference("shop.Price", "prices")],
    )
    price = record("shop.Price", {"name": "in", "type": "Currency"})
    add_referenced(server, "prices", price, reference("shop.Currency", "currencies"))
    add_referenced(
        server, "currencies", json.dumps({"type": "enum", "name": "shop.Currency", "symbols": ["EUR"]})
    )

    found = registry.schema_by_id(1)

    assert found is not None
    assert found.problem is None
    price_type, nullable = (declared["type"] for declared in found.parsed()["fields"])
    assert price_type["fields"][0]["type"]["symbols"] == ["EUR"]
    assert nullable == ["null", "shop.Price"]


@pytest.mark.parametrize(
    ("references", "problem"),
    [
        ([reference("shop.Price", "gone")], "version 1 of subject gone, which does not exist"),
        ([reference("shop.Price", "circle")], "version 1 of subject circle, which refers to itself"),
        ([], "UnknownType"),
        (
            [reference("shop.Price", "other")],
            "the type shop.Price is neither in the schema nor in its references",
        ),
    ],
)
def test_reference_that_cannot_be_resolved_concerns_its_id_only(
    server: PlayedServer,
    registry: SchemaRegistry,
    caplog: pytest.LogCaptureFixture,
    references: list[dict[str, object]],
    problem: str,
) -> None:
    server.replies["GET /subjects/gone/versions/1"] = coded(404, 40402)
    add_referenced(server, "circle", record("shop.Price"), reference("shop.Price", "circle"))
    add_referenced(server, "other", record("shop.Other"))
    add_subject(server, "bug-shop.Sold", 1, 2)
    add_schema(server, 1, SOLD)
    text = record("shop.Sold", {"name": "a", "type": "shop.Price"})
    add_schema(server, 2, text, references=references)

    with caplog.at_level(logging.WARNING):
        found = registry.schema_ids("bug")

    assert found[1].problem is None
    assert problem in str(found[2].problem)
    assert found[2].name == "Sold"
    assert registry.usable_schema(2) is None


def test_registry_that_is_busy_leaves_a_reference_undecided(
    server: PlayedServer, registry: SchemaRegistry
) -> None:
    text = record("shop.Sold", {"name": "a", "type": "shop.Price"})
    add_schema(server, 1, text, references=[reference("shop.Price", "prices")])
    server.otherwise = Reply(503, HTML)
    with pytest.raises(RegistryUnavailableError):
        registry.schema_by_id(1)

    add_referenced(server, "prices", record("shop.Price"))

    found = registry.schema_by_id(1)
    assert found is not None
    assert found.problem is None
