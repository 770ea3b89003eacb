"""The OpenAPI document: valid, complete, and of the same declarations as the routes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from include.declarations.load import load_catalog
from query_api.http.contract.document import openapi_document, operations
from query_api.http.contract.json_schema import value_schema
from query_api.http.json_text import dumps
from query_api.http.problem_kinds import kind_of
from tests.support.contract import demo_catalog
from tests.unit.query_api.http.parcels import Node, parcels_settings
from tests.unit.query_api.http.requests.test_declared_endpoints import PATH, declare
from tests.unit.query_api.http.stops import StopsNode, stops_settings

# Pages for people, and the files that belong to them.
PAGES = re.compile(r"/|/docs|/map/.*|/reports/.*|/(?:status|page|map|docs)-files/.*")


@pytest.mark.parametrize("is_secured", [False, True])
def test_the_document_is_valid(*, is_secured: bool) -> None:
    validate(openapi_document(demo_catalog(), is_secured=is_secured))


def test_the_document_is_the_same_at_each_node_and_for_the_command_line(tmp_path: Path) -> None:
    settings = stops_settings(tmp_path)
    client = StopsNode(settings).client

    answer = client.get("/openapi.json")
    again = client.get("/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})

    document = openapi_document(load_catalog(settings.declaration_folders))
    assert (answer.headers["Content-Type"], json.loads(answer.text)) == ("application/json", document)
    assert (again.status_code, again.text) == (304, "")


def test_every_route_for_programs_is_an_operation_and_every_operation_a_route(tmp_path: Path) -> None:
    settings = stops_settings(tmp_path)
    declare(settings)
    rules = StopsNode(settings).app.url_map.iter_rules()
    routed = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in rules
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not PAGES.fullmatch(rule.rule)
    }

    described = {(one.path, one.method) for one in operations(load_catalog(settings.declaration_folders))}
    assert described == routed


def test_every_operation_has_an_id_of_its_own_and_known_problems() -> None:
    found = operations(demo_catalog())

    assert len({one.id for one in found}) == len(found)
    assert [slug for one in found for slug in one.all_problems if kind_of(slug) is None] == []


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/api/parcels.getPlace?parcelId=A%201/2", "/api/parcels.getPlace"),
        ("/api/read-models/parcels/records/A%201%2F2", "/api/read-models/{name}/records/{key}"),
        ("/api/read-models/parcels/records?key=A%201/2", "/api/read-models/{name}/records"),
        ("/api/read-models/parcels/records", "/api/read-models/{name}/records"),
        ("/api/read-models/parcels/records?partition=0", "/api/read-models/{name}/records"),
        ("/api/read-models", "/api/read-models"),
        ("/api/partitions", "/api/partitions"),
        ("/healthz", "/healthz"),
        ("/problems", "/problems"),
        ("/problems/unknown-key", "/problems/{slug}"),
    ],
)
def test_an_answer_matches_its_schema(tmp_path: Path, target: str, path: str) -> None:
    node = Node(parcels_settings(tmp_path))
    document = openapi_document(load_catalog(node.settings.declaration_folders))
    described = document["paths"][path]["get"]["responses"]["200"]
    schema = {**described["content"]["application/json"]["schema"], "components": document["components"]}
    validator = Draft202012Validator(schema)

    answer = node.fast.get(target)

    assert answer.status_code == 200, answer.text
    body = json.loads(answer.text)
    assert list(validator.iter_errors(body)) == []
    assert set(described.get("headers", ())) <= set(answer.headers.keys())
    assert not validator.is_valid([{}] if isinstance(body, list) else dict.fromkeys(body, ()))


@pytest.mark.parametrize(
    ("avro", "valid", "invalid"),
    [
        ("double", [1.5, "NaN", "-Infinity"], ["nan", None]),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [5, 5.25, "5.25"], [None]),
        (["null", "long"], [None, 5], ["5"]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["A"], ["C"]),
        ({"type": "array", "items": ["null", "boolean"]}, [[True, None], []], [[1], {}]),
        ({"type": "map", "values": "string"}, [{"a": "b"}], [{"a": 1}]),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]},
            [{"a": 1}],
            [{}, {"a": "1"}],
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, ["2026-01-02T03:04:05+00:00"], [5]),
        ({"type": "int", "logicalType": "time-millis"}, [5], ["00:00:05"]),
        ("t.Named", [{}, 5], []),
    ],
)
def test_the_schema_of_a_value_is_that_of_its_json(
    avro: object, valid: list[Any], invalid: list[Any]
) -> None:
    validator = Draft202012Validator(value_schema(avro))

    assert [value for value in valid if not validator.is_valid(value)] == []
    assert [value for value in invalid if validator.is_valid(value)] == []


def test_a_secured_node_names_what_each_operation_needs() -> None:
    document = openapi_document(demo_catalog(), is_secured=True)
    paths = document["paths"]

    assert document["security"] == [{"bearerAuth": []}]
    assert paths["/healthz"]["get"]["security"] == []
    assert paths["/api/customers.getBalance"]["get"]["security"] == [{"bearerAuth": ["read"]}]
    assert paths["/api/balance.addFunds"]["post"]["security"] == [{"bearerAuth": ["write"]}]
    assert "401" in paths["/api/balance.addFunds"]["post"]["responses"]
    assert "missing-scope" in document["components"]["responses"]["403"]["description"]
    assert openapi_document(demo_catalog())["security"] == [{}]


def test_a_kind_of_lookup_is_described_as_far_as_it_says(tmp_path: Path) -> None:
    settings = stops_settings(tmp_path)
    declare(settings)

    found = openapi_document(load_catalog(settings.declaration_folders))["paths"][PATH]["get"]

    assert [one["name"] for one in found["parameters"]] == ["stopIds", "decimals"]
    assert found["responses"]["200"]["content"]["application/json"]["schema"]["type"] == "array"
    assert "invalid-parameter" in found["responses"]["400"]["description"]


def test_a_lookup_of_events_under_another_key_has_no_bound() -> None:
    catalog = demo_catalog()
    rekeyed = {api.model.name for api in catalog.apis if api.model.rekeyed_from is not None}
    found = {one.path: one for one in operations(catalog)}

    for api in catalog.apis:
        for lookup in api.lookups:
            names = [one.name for one in found[lookup.path].parameters]
            assert ("minOffset" in names) is (api.model.name not in rekeyed)


def test_examples_of_commands_are_valid() -> None:
    document = openapi_document(demo_catalog())
    bodies = [
        one["post"]["requestBody"]["content"]["application/json"]
        for one in document["paths"].values()
        if "post" in one
    ]

    assert bodies
    for body in bodies:
        assert list(Draft202012Validator(body["schema"]).iter_errors(body["example"])) == []
    amount = Draft202012Validator(bodies[0]["schema"]["properties"]["amount"])
    assert [
        text for text in ("0", "0.00", "5.001", "1e5", "-1", "5.", ".5", "") if amount.is_valid(text)
    ] == []
    assert [text for text in ("5", "5.00", "0.01", "9999999999999999.99") if not amount.is_valid(text)] == []


def test_the_document_has_only_values_of_json() -> None:
    document = openapi_document(demo_catalog())

    assert json.loads(dumps(document)) == document
