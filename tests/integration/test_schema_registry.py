"""The client of the schema registry, with the real one: what it rejects, does not have, and has deleted."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from include.declarations.catalog import Catalog
from include.errors import RegistryUnavailableError, SchemaError
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.settings import RegistryConnection, Settings
from spark_jobs.streaming.read_model_setup import set_up_read_models
from spark_jobs.streaming.stream_context import StreamContext
from tests.support.http.local_http import HTTP
from tests.support.stream_events import BALANCE

TOPIC = "real-registry"
MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}


def record(name: str, *fields: dict[str, Any]) -> RecordSchema:
    return RecordSchema.parse(json.dumps({"type": "record", "name": name, "fields": fields}), name)


@pytest.fixture
def registry(settings: Settings) -> SchemaRegistry:
    return SchemaRegistry(settings.registry.connection)


def add(settings: Settings, subject: str, text: str, **more: object) -> int:
    """Register any schema, as another program might, and return its id."""
    url = f"{settings.registry.url}/subjects/{subject}/versions"
    return int(HTTP.post(url, json={"schema": text, **more}).raise_for_status().json()["id"])


def test_schema_that_the_registry_rejects_is_an_error_of_the_schema(registry: SchemaRegistry) -> None:
    registry.register(TOPIC, record("Sold"))

    with pytest.raises(SchemaError, match="rejects the schema for subject real-registry-Sold"):
        registry.register(TOPIC, record("Sold", {"name": "id", "type": "string"}))  # incompatible: 409
    with pytest.raises(SchemaError, match="rejects the schema for subject real-registry-Other"):
        registry.register(TOPIC, record("Other", {"name": "id", "type": "Missing"}))  # invalid: 422


def test_schema_that_the_registry_cannot_compare_is_rejected(
    settings: Settings, registry: SchemaRegistry
) -> None:
    add(settings, "compared-money", json.dumps(MONEY))
    reference = {"name": "shop.Money", "subject": "compared-money", "version": 1}
    text = record("Sold", {"name": "price", "type": "shop.Money"}).text
    add(settings, "compared-Sold", text, references=[reference])

    with pytest.raises(SchemaError, match="rejects the schema for subject compared-Sold: Could not execute"):
        registry.register("compared", record("Sold"))


def test_server_at_a_wrong_path_rejects_nothing(settings: Settings) -> None:
    for path in ("", "/apis/ccompat/v1"):
        registry = SchemaRegistry(
            RegistryConnection(settings.registry.url.removesuffix("/apis/ccompat/v7") + path)
        )
        with pytest.raises(RegistryUnavailableError, match="does not reply as a registry does"):
            registry.schema_by_id(1)
        with pytest.raises(RegistryUnavailableError):
            registry.register(TOPIC, record("Sold"))


def test_topic_has_the_schemas_of_its_own_subjects(settings: Settings, registry: SchemaRegistry) -> None:
    own = registry.register(TOPIC, record("Own"))
    other = registry.register(f"{TOPIC}-of-another", record("Foreign"))
    any_name = add(settings, f"{TOPIC}-value", record("AnyName").text)
    add(settings, "shop-money", json.dumps(MONEY))
    priced = add(
        settings,
        f"{TOPIC}-Priced",
        record("Priced", {"name": "price", "type": "shop.Money"}).text,
        references=[{"name": "shop.Money", "subject": "shop-money", "version": 1}],
    )
    deleted = add(settings, f"{TOPIC}-Deleted", record("Deleted").text)
    HTTP.delete(f"{settings.registry.url}/subjects/{TOPIC}-Deleted").raise_for_status()
    message = add(
        settings, f"{TOPIC}-Message", 'syntax = "proto3"; message Message { }', schemaType="PROTOBUF"
    )

    found = registry.schema_ids(TOPIC)

    assert {own, any_name, priced} <= found.keys()
    assert found.keys().isdisjoint({other, deleted, message})
    assert found[priced].problem is None
    assert found[priced].parsed()["fields"][0]["type"]["fields"] == MONEY["fields"]
    unreadable = registry.schema_by_id(message)
    assert unreadable is not None
    assert unreadable.problem == "the schema is PROTOBUF, not AVRO"
    assert registry.schema_by_id(900_000) is None


def test_schema_that_is_referred_to_cannot_be_deleted(settings: Settings) -> None:
    add(settings, "kept-money", json.dumps(MONEY))
    text = record("Kept", {"name": "price", "type": "shop.Money"}).text
    add(
        settings,
        "kept-Kept",
        text,
        references=[{"name": "shop.Money", "subject": "kept-money", "version": 1}],
    )

    with pytest.raises(httpx.HTTPStatusError):
        HTTP.delete(f"{settings.registry.url}/subjects/kept-money").raise_for_status()


def test_read_model_whose_event_type_is_rejected_stops_no_other_one(
    settings: Settings, registry: SchemaRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    rejected, accepted = (
        replace(BALANCE, name=name, source_topic=f"{name}-events") for name in ("rejected", "accepted")
    )
    boolean = {"name": "amount", "type": "boolean"}
    registry.register(rejected.source_topic, record("foldlake.events.FundsAdded", boolean))
    models = {model.name: model for model in (rejected, accepted)}

    def no_session() -> SparkSession:
        raise AssertionError

    with StreamContext(no_session, settings, Catalog(models), "test") as context:
        set_up_read_models(context)

        assert (
            "read model rejected: The schema registry rejects the schema for subject rejected-events-"
            in caplog.text
        )
        assert len(context.schemas(accepted.source_topic).schema_ids.writers) == len(accepted.event_schemas)
        with pytest.raises(SchemaError):
            context.register_event_types(rejected)
