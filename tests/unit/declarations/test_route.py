"""Routes are found beside read models, with the options of their topics; what cannot work is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.route import Route
from include.declarations.load import load_catalog
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError, SchemaError
from include.kafka.json_mapping import JsonMapping
from include.kafka.record_schema import RecordSchema
from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from tests.support.declarations.refusal import refusal

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
DECLARED = Path(__file__).parents[2] / "support" / "read_models_with_routes"
MODULE = """
from include.declarations.latency import Latency
from include.declarations.kinds.route import Route
from include.declarations.topic_options import TopicOptions
ROUTE = Route(
    name={name!r}, source_topic={source!r}, event_types=("FundsAdded",), output_topic={output!r}, output_type="FundsAdded",
    fields=dict, topic=TopicOptions({options}), version={version},
)
"""
READER = """
from dataclasses import replace
from include.read_models.balance.model import READ_MODEL as BALANCE
READ_MODEL = replace(BALANCE, name="reader", source_topic="entries")
"""
SLOW_MODEL = """
from dataclasses import replace
from include.declarations.latency import Latency
from include.read_models.balance.model import READ_MODEL as BALANCE
READ_MODEL = replace(BALANCE, name="slow", latency=Latency.SECOND)
"""


def declare(folder: Path, name: str, source: str, output: str, options: str = "", version: int = 1) -> None:
    text = MODULE.format(name=name, source=source, output=output, options=options, version=version)
    (folder / f"{name.replace('-', '_')}_{version}.py").write_text(text)


def test_a_route_is_found_beside_read_models() -> None:
    catalog = load_catalog((DECLARED,))

    assert catalog.routes.keys() == {"payments", "postings"}
    assert catalog.models.keys() == {"accounts", "balance"}
    assert sorted(catalog.source_topics) == ["balance", "postings", "terminal-log"]
    assert [schema.name for schema in catalog.event_schemas("postings")] == ["Posting"]
    assert {schema.name for schema in catalog.event_schemas("balance")} == {"FundsAdded", "FundsWithdrawn"}
    assert catalog.routes["postings"].output_schema.key_field == "account"


def test_any_module_of_a_package_may_declare_a_route(tmp_path: Path) -> None:
    package = tmp_path / "ledger"
    shutil.copytree(DECLARED, package)
    (package / "__init__.py").touch()
    (package / "accounts.py").rename(package / "model.py")

    assert load_catalog((tmp_path,)).routes.keys() == {"payments", "postings"}
    assert load_catalog((tmp_path,)).models.keys() == {"accounts", "balance"}


def test_a_later_version_of_a_route_writes_to_its_own_topic_with_the_same_options(tmp_path: Path) -> None:
    declare(tmp_path, "ledger", "balance", "entries", "partitions=6")
    declare(tmp_path, "ledger", "balance", "entries", version=2)
    (tmp_path / "reader.py").write_text(READER)

    catalog = load_catalog((tmp_path,))

    second = catalog.routes["ledger.v2"]
    assert (second.output_topic, second.query_name) == ("entries.v2", "route/ledger.v2")
    assert second.topic == TopicOptions(partitions=6)
    created = [topic.name for topic in second.topics(Settings.of().topics)]
    assert created == ["balance", "balance.dead-letter", "entries.v2", "entries.v2.dead-letter"]
    assert sorted(catalog.source_topics) == ["balance", "entries", "entries.v2"]
    assert catalog.newest_topic("entries") == "entries.v2"
    assert catalog.newest_topic("balance") == "balance"
    assert catalog.event_schemas("entries.v2") == catalog.event_schemas("entries")
    assert catalog.partitions("entries.v2", Settings.of().topics) == 6
    reader = catalog.models["reader"].reading("entries.v2")
    assert (reader.source_topic, reader.declared_topic) == ("entries.v2", "entries")
    assert reader.reading("").source_topic == "entries"


def test_a_version_is_declared_once(tmp_path: Path) -> None:
    declare(tmp_path, "ledger", "balance", "entries", version=2)
    shutil.copy(tmp_path / "ledger_2.py", tmp_path / "copy.py")
    with pytest.raises(ReadModelError, match="'ledger' and have version 2"):
        load_catalog((tmp_path,))


def test_a_version_is_at_least_1(tmp_path: Path) -> None:
    declare(tmp_path, "ledger", "balance", "entries", version=0)
    assert "version of route ledger is 0" in refusal(tmp_path)


def test_a_later_version_does_not_lead_back_to_its_source(tmp_path: Path) -> None:
    declare(tmp_path, "there", "first", "second", version=2)
    declare(tmp_path, "back", "second", "first")
    with pytest.raises(ReadModelError, match="circulate"):
        load_catalog((tmp_path,))


def test_a_topic_has_the_options_of_the_routes_that_write_it(tmp_path: Path) -> None:
    declare(tmp_path, "first", "balance", "middle", "partitions=6")
    declare(tmp_path, "second", "middle", "end", "retention_ms=5")

    routes = load_catalog((tmp_path,)).routes

    assert routes["first"].source == TopicOptions()
    assert routes["second"].source == routes["first"].topic == TopicOptions(partitions=6)
    topics = {
        topic.name: (topic.partitions, topic.config["retention.ms"])
        for topic in routes["second"].topics(Settings.of(partitions=4).topics)
    }
    assert topics == {"middle": (6, "-1"), "middle.dead-letter": (6, "-1"), "end": (4, "5")}


def test_the_driver_has_slots_for_routes_and_the_dead_letters_of_their_sources(tmp_path: Path) -> None:
    settings = Settings.of(partitions=4, read_models_dir=tmp_path)
    without = stream_task_slots(settings)
    assert without == (1 + 2) * 8 + 4

    declare(tmp_path, "first", "balance", "middle", "partitions=6")
    assert stream_task_slots(settings) == without + 4, "balance has dead letters already"
    declare(tmp_path, "second", "middle", "end")
    assert stream_task_slots(settings) == without + 4 + 6 + 6


def test_read_models_of_one_topic_share_the_slots_of_its_dead_letters(tmp_path: Path) -> None:
    settings = Settings.of(partitions=4, read_models_dir=tmp_path)
    without = stream_task_slots(settings)
    (tmp_path / "slow.py").write_text(SLOW_MODEL.replace("Latency.SECOND", "Latency.MILLISECONDS"))
    assert stream_task_slots(settings) == without + 8


def test_routes_in_batches_share_two_slots(tmp_path: Path) -> None:
    settings = Settings.of(partitions=4, read_models_dir=tmp_path)
    without = stream_task_slots(settings)
    for name in ("first", "second"):
        declare(tmp_path, name, "balance", name, "), latency=Latency.SECOND, where=(None")
    assert stream_task_slots(settings) == without + 2
    with pytest.raises(ReadModelError, match="allowed: milliseconds, second"):
        replace(load_catalog((tmp_path,)).routes["first"], latency="hour")  # type: ignore[arg-type]  # as in a module that is not type-checked


def test_read_models_in_batches_share_these_slots(tmp_path: Path) -> None:
    settings = Settings.of(partitions=4, read_models_dir=tmp_path)
    without = stream_task_slots(settings)
    declare(tmp_path, "first", "balance", "first", "), latency=Latency.SECOND, where=(None")
    (tmp_path / "slow.py").write_text(SLOW_MODEL)
    assert stream_task_slots(settings) == without + 2
    model = load_catalog((tmp_path,)).models["slow"]
    with pytest.raises(
        ReadModelError, match="latency of read model slow is 'hour': allowed: milliseconds, second"
    ):
        replace(model, latency="hour")  # type: ignore[arg-type]  # as in a module that is not type-checked


@pytest.mark.parametrize("outputs", [["a"], ["b", "a"], ["b", "c", "a"]])
def test_a_topic_is_not_routed_back_to_itself(tmp_path: Path, outputs: list[str]) -> None:
    for source, output in zip(["a", "b", "c"], outputs, strict=False):
        declare(tmp_path, f"from-{source}", source, output)
    with pytest.raises(ReadModelError, match="circulate"):
        load_catalog((tmp_path,))


def test_two_routes_of_one_name_are_refused(tmp_path: Path) -> None:
    declare(tmp_path, "same", "a", "b")
    (tmp_path / "another.py").write_text((tmp_path / "same_1.py").read_text())
    with pytest.raises(ReadModelError, match="Two flows are named 'same'"):
        load_catalog((tmp_path,))


def test_a_name_and_event_types_are_needed() -> None:
    with pytest.raises(ReadModelError, match="not valid"):
        Route("Not valid", "a", ("FundsAdded",), "b", "FundsAdded", dict)
    with pytest.raises(ReadModelError, match="reads no event types"):
        Route("valid", "a", (), "b", "FundsAdded", dict)


def test_an_output_needs_a_key(tmp_path: Path) -> None:
    schema = tmp_path / "Unkeyed.avsc"
    schema.write_text('{"type": "record", "name": "Unkeyed", "fields": [{"name": "id", "type": "string"}]}')
    route = Route("valid", "a", ("FundsAdded",), "b", "Unkeyed", dict)
    with pytest.raises(ReadModelError, match=r"has no key.*foldlake\.key"):
        route.require_valid((tmp_path,))


def test_something_else_as_a_route_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("ROUTE = 1\n")
    assert "must be of type Route" in refusal(tmp_path)


def test_a_route_without_an_output_type_writes_events_as_they_are() -> None:
    route = Route(name="copy", source_topic="balance", event_types=("FundsAdded",), output_topic="copies")
    assert [schema.name for schema in route.written_schemas] == ["FundsAdded"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"output_type": "FundsAdded"}, "needs both `output_type` and `fields`, or neither"),
        ({"fields": dict}, "needs both `output_type` and `fields`, or neither"),
        ({"each": dict}, "give their `output_type` and `fields`"),
        ({"output_type": "FundsAdded", "fields": dict, "key": dict}, "remove `key`"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ReadModelError, match=message):
        Route(
            name="copy",
            source_topic="balance",
            event_types=("FundsAdded",),
            output_topic="copies",
            **fields,  # type: ignore[arg-type]  # contradictory on purpose
        )


def test_a_topic_has_one_format(tmp_path: Path) -> None:
    declared = (DECLARED / "payments.py").read_text()
    (tmp_path / "payments.py").write_text(declared.replace('"terminal-log"', '"balance"'))
    shutil.copytree(DECLARED / "schemas", tmp_path / "schemas")
    with pytest.raises(ReadModelError, match="payments reads balance as JSON, and balance reads it as Avro"):
        load_catalog((tmp_path,))


def test_a_route_does_not_write_json() -> None:
    with pytest.raises(ReadModelError, match="reads JSON, and what it writes is Avro"):
        Route("copy", "log", ("CardPayment",), "elsewhere", source_format=EventFormat.JSON)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"foldlake.json": {"logger_name": 1}}, "give an object of member names and texts"),
        ({"fields": [{"name": "amount", "type": {"type": "map", "values": "string"}}]}, "Field amount"),
        ({"fields": [{"name": "amount", "type": {**DECIMAL, "precision": 30}}]}, "at most 28 digits"),
        (
            {"fields": [{"name": "a", "type": "int", "foldlake.json": "b"}, {"name": "b", "type": "int"}]},
            "Two fields",
        ),
        ({"fields": [{"name": "a", "type": "int", "foldlake.json": "it's"}]}, "apostrophe"),
        *(
            ({"fields": [{"name": "a", "type": {"type": "array", "items": items}}]}, "Field a")
            for items in (
                "bytes",
                ["int", "string"],
                ["null"],
                {"type": "array", "items": "string"},
                {"type": "long", "logicalType": "timestamp-millis"},
            )
        ),
    ],
)
def test_a_mapping_of_json_that_is_not_possible_is_refused(changes: dict[str, object], message: str) -> None:
    declared = {"type": "record", "name": "Logged", "fields": [{"name": "a", "type": "int"}]} | changes
    with pytest.raises(SchemaError, match=message):
        JsonMapping.of(RecordSchema.parse(json.dumps(declared), "test"))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("string", ("string", False)),
        ({"type": "string", "avro.java.string": "String"}, ("string", False)),
        (["null", "double"], ("double", True)),
        (["boolean", "null"], ("boolean", True)),
    ],
)
def test_an_array_in_json_has_items_of_one_type(items: object, expected: tuple[str, bool]) -> None:
    declared = {
        "type": "record",
        "name": "Logged",
        "fields": [{"name": "a", "type": {"type": "array", "items": items}}],
    }
    (field,) = JsonMapping.of(RecordSchema.parse(json.dumps(declared), "test")).fields
    assert (field.item_type, field.has_nullable_items) == expected
