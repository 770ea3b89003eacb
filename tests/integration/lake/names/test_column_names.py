"""Fields of events and states may have the names of Foldlake's own columns: folds, routes, emissions and both decoders read the fields."""

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header, split
from spark_jobs.folding.decode import EventDecoder, good_events
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.independent_decode import independently_decoded
from spark_jobs.folding.key_columns import key_columns
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import emission_rule
from spark_jobs.routing.route_query import RouteQuery
from tests.support.faults import tricky_names as tricky

START = datetime(2026, 1, 1, tzinfo=UTC)
# Of schema id 1 and 2, and the subjects of their events.
TYPES = ("Rating", "Review")
EVENTS = ((1, "a"), (2, "a"), (1, "b"), (1, "a"), (2, "b"), (1, "b"))
NEWEST = {"a": 3, "b": 5}
KAFKA_COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = tmp_path_factory.mktemp("tricky")
    tricky.write_schemas(found)
    return found


@pytest.fixture(scope="module")
def model(folder: Path) -> ReadModel:
    return tricky.read_model("ratings", "ratings", TYPES, schema_folders=(folder,))


@pytest.fixture(scope="module")
def ids(model: ReadModel) -> SchemaIds:
    return SchemaIds(dict(enumerate(model.event_schemas, start=1)))


@pytest.fixture(scope="module")
def source(lake_spark: SparkSession, ids: SchemaIds) -> DataFrame:
    """The events, as Spark's Kafka source has them."""
    rows = []
    for number, (schema_id, subject) in enumerate(EVENTS):
        values = tricky.event(number, subject) | {"occurredOn": START + timedelta(seconds=number)}
        rows.append((subject.encode(), encoded(schema_id, ids.writers[schema_id], values), 0, number, START))
    return lake_spark.createDataFrame(rows, KAFKA_COLUMNS)


def encoded(schema_id: int, schema: RecordSchema, values: dict[str, Any]) -> bytes:
    out = io.BytesIO(header(schema_id))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema.parsed()), values)
    return out.getvalue()


def values_of(rows: Iterable[Any], schema: RecordSchema) -> list[dict[str, Any]]:
    """Return the fields of records in Confluent's wire format."""
    parsed = fastavro.parse_schema(schema.parsed())
    found = []
    for row in rows:
        _, body = split(bytes(row["value"]))
        found.append(fastavro.schemaless_reader(io.BytesIO(body), parsed, None))
    return found  # type: ignore[return-value]  # records


def test_both_decoders_fold_the_fields(model: ReadModel, ids: SchemaIds, source: DataFrame) -> None:
    decoder = EventDecoder(model.event_schemas, ids, 1)
    for events in (good_events(decoder.decode(source)), independently_decoded(source, decoder)):
        found = {row["key"]: row.asDict() for row in fold(model, 1, events).collect()}
        assert {
            key: {name: row[name] for name in (*tricky.STATE_NAMES, tricky.NULLABLE)}
            for key, row in found.items()
        } == {key: tricky.expected(number) for key, number in NEWEST.items()}
        assert {key: (row["source_partition"], row["source_offset"]) for key, row in found.items()} == {
            key: (0, number) for key, number in NEWEST.items()
        }


def test_what_a_field_hides_keeps_its_internal_name(
    model: ReadModel, ids: SchemaIds, source: DataFrame
) -> None:
    events = good_events(EventDecoder(model.event_schemas, ids, 1).decode(source)).orderBy("record:offset")
    rows = events.select(
        col("offset"),
        col("record:offset").alias("of record"),
        col("record:key").cast("string").alias("key of record"),
        col("record:event_type").alias("type"),
        col("rating"),
        # The field `rating` hides the event type `Rating`, and not `Review`.
        col("event:Rating").getField("rating").alias("of type"),
        col("Review.rating").alias("of the other type"),
    ).collect()

    first, second = rows[:2]
    rating, offset = (1_000 * tricky.EVENT_NAMES.index(name) for name in ("rating", "offset"))
    assert tuple(first) == (offset, 0, "a", "Rating", rating, rating, None)
    assert tuple(second) == (offset + 1, 1, "a", "Review", rating + 1, None, rating + 1)


def copy_of_fields(_revision: int = 1) -> Mapping[str, Column]:
    """Return the fields of Copy: those of the event."""
    return {"subject": col("subject"), "occurredOn": col("occurredOn")} | {
        name: col(name) for name in tricky.EVENT_NAMES
    }


def test_a_route_reads_the_fields(folder: Path, ids: SchemaIds, source: DataFrame) -> None:
    route = Flow(
        kind="route",
        name="copies",
        source_topic="ratings",
        event_types=TYPES,
        output_topic="copies",
        output_type="Copy",
        fields=copy_of_fields,
        where=lambda: col("reason") + col("offset") + col("Partition") > 0,
        schema_folders=(folder,),
    )
    rows = RouteQuery(route, 1, 1, 7, b"", {}).records(source, ids).collect()

    found = values_of(rows, route.output_schema)
    expected = [tricky.event(number, subject) for number, (_, subject) in enumerate(EVENTS)]
    assert [{name: value for name, value in one.items() if name != "occurredOn"} for one in found] == expected
    assert [bytes(row["key"]).decode() for row in rows] == [subject for _, subject in EVENTS]


def test_the_element_of_a_route_hides_a_field_of_its_name(
    folder: Path, ids: SchemaIds, source: DataFrame
) -> None:
    def elements() -> Mapping[str, Column]:
        return {
            **copy_of_fields(),
            "item": col("item"),
            "value": col("Review.item"),
            "key": col("record:offset"),
        }

    route = Flow(
        kind="route",
        name="elements",
        source_topic="ratings",
        event_types=TYPES,
        output_topic="copies",
        output_type="Copy",
        fields=elements,
        each=lambda: F.array(col("item") + 1, col("item") + 2),
        where=lambda: col("event_type") == col("event:Review.event_type"),
        schema_folders=(folder,),
    )
    found = values_of(RouteQuery(route, 1, 1, 7, b"", {}).records(source, ids).collect(), route.output_schema)

    item = 1_000 * tricky.EVENT_NAMES.index("item")
    assert [(one["item"], one["value"], one["key"]) for one in found] == [
        (item + number + added, item + number, number) for number in (1, 4) for added in (1, 2)
    ]


def test_an_unchanged_event_gets_a_key_of_its_fields(folder: Path, ids: SchemaIds, source: DataFrame) -> None:
    route = Flow(
        kind="route",
        name="by-key",
        source_topic="ratings",
        event_types=TYPES,
        output_topic="by-key",
        key=lambda: col("key").cast("string"),
        schema_folders=(folder,),
    )
    rows = RouteQuery(route, 1, 1, 7, b"", {}).records(source, ids).collect()

    assert [bytes(row["key"]).decode() for row in rows] == [str(number) for number in range(len(EVENTS))]
    assert [bytes(row["value"]) for row in rows] == [bytes(row["value"]) for row in source.collect()]


def test_the_state_of_an_emission_hides_a_field_of_its_name(
    folder: Path, model: ReadModel, ids: SchemaIds, source: DataFrame
) -> None:
    def fields(_revision: int) -> Mapping[str, Column]:
        return {
            **copy_of_fields(),
            "state": col("state.state"),
            "key": col("state.event_count"),
            "value": col("Review.state"),
        }

    emission = Emission(
        name="copies",
        read_model="ratings",
        output_topic="copies",
        output_type="Copy",
        fields=fields,
        where=lambda: col("state.offset") + col("offset") > 0,
        schema_folders=(folder,),
    )
    query = KeyedQuery(emission_rule(emission, model, 1), 1, 1, 1, 7, b"", {})
    found = {
        one["subject"]: one for one in values_of(query.records(source, ids).collect(), emission.output_schema)
    }

    # In a batch, each key gives its newest event only. Both are ratings.
    assert {key: (one["state"], one["key"], one["value"], one["offset"]) for key, one in found.items()} == {
        key: (
            tricky.expected(number)["state"],
            3,
            None,
            tricky.event(number, key)["offset"],
        )
        for key, number in NEWEST.items()
    }


def test_json_has_the_same_columns(lake_spark: SparkSession, folder: Path) -> None:
    route = Flow(
        kind="route",
        name="from-json",
        source_topic="raw",
        event_types=("Rating",),
        source_format=EventFormat.JSON,
        output_topic="copies",
        output_type="Copy",
        fields=lambda: {**copy_of_fields(), "key": col("record:offset"), "value": col("event:Rating.value")},
        where=lambda: col("record:timestamp") > col("occurredOn"),
        schema_folders=(folder,),
    )
    objects = [tricky.event(n, "a") | {"occurredOn": START.isoformat()} for n in range(2)]
    rows = [
        (b"a", json.dumps(one).encode(), 0, n, START + timedelta(seconds=n)) for n, one in enumerate(objects)
    ]
    outputs = RouteQuery(route, 1, 1, 7, b"", {}).records(
        lake_spark.createDataFrame(rows, KAFKA_COLUMNS), SchemaIds({})
    )

    (found,) = values_of(outputs.collect(), route.output_schema)
    assert {name: value for name, value in found.items() if name != "occurredOn"} == tricky.event(1, "a") | {
        "key": 1
    }


def test_privacy_follows_the_column_that_a_name_means(folder: Path, source: DataFrame) -> None:
    ids = SchemaIds(dict(enumerate(event_schema(name, (folder,)) for name in ("Secret", "Review"))))

    def routed(**changes: Column) -> None:
        route = Flow(
            kind="route",
            name="copies",
            source_topic="ratings",
            event_types=("Secret", "Review"),
            output_topic="copies",
            output_type="Copy",
            fields=lambda: {**copy_of_fields(), "item": F.lit(0), **changes},
            each=lambda: F.array("item"),
            schema_folders=(folder,),
        )
        RouteQuery(route, 1, 1, 7, b"", {}).records(source, ids)

    routed()
    personal = ("Secret.secret", "event:Secret.secret", "item", "record:value")
    for name in personal:
        with pytest.raises(ReadModelError, match="which is personal"):
            routed(topic=col(name).cast("string").cast("bigint"))


def test_a_key_is_made_of_the_field_that_hides_kafkas_column(
    lake_spark: SparkSession, model: ReadModel
) -> None:
    def columns(*names: str) -> list[str]:
        return key_columns(lake_spark, replace(model, key=lambda: F.concat(*map(col, names))))

    assert columns("subject", "key", "OFFSET") == ["OFFSET", "key", "subject"]
    assert columns("record:key", "event:Rating.subject", "Review.subject") == [
        "event:Rating.subject",
        "event:Review.subject",
        "record:key",
    ]
