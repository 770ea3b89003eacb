"""The records of a route, computed by Spark from records of its source: outputs, origins, privacy, and what is written already."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.functions import col, upper, when

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.kinds.flow import Flow
from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.kafka.events import EventSerializer
from include.kafka.origins import LanePartition, OutputOrigin
from include.kafka.schema_ids import SchemaIds
from include.read_models.balance.events import FundsAdded
from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.routing.route_query import RouteQuery

DECLARATIONS = Path(__file__).parents[3] / "support" / "read_models_with_routes"
ROUTE = load_catalog((DECLARATIONS,)).routes["postings"]
SCHEMA_ID = 1
SCHEMA_IDS = SchemaIds({SCHEMA_ID: event_schema("FundsAdded")})
AMOUNTS = ("5.00", "0.50", "7.00", "1.00")
KEY = b"a secret key"


class OneId:
    """A schema registry that gives every schema the same id."""

    def register(self, _topic: str, _schema: object) -> int:
        """Return the id."""
        return SCHEMA_ID


@pytest.fixture(scope="module")
def source(lake_spark: SparkSession) -> DataFrame:
    """Deposits of one customer, as records of a topic with one partition."""
    serializer = EventSerializer(OneId(), "balance")
    rows = [
        (b"c", bytearray(serializer.serialize(deposit(number, amount))), 0, number)
        for number, amount in enumerate(AMOUNTS)
    ]
    return lake_spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")


def deposit(number: int, amount: str) -> FundsAdded:
    return FundsAdded("c", Decimal(amount), str(number), datetime(2026, 1, 1, tzinfo=UTC))


def routed(
    route: Flow, source: DataFrame, written: Mapping[LanePartition, OutputOrigin] | None = None
) -> list[Row]:
    query = RouteQuery(route, 1, 2, 7, KEY, written or {})
    return query.records(source, SCHEMA_IDS).collect()


def origins(rows: list[Row]) -> list[tuple[int, int]]:
    headers = [{header.key: bytes(header.value).decode() for header in row.headers} for row in rows]
    return [(int(found["source_offset"]), int(found["source_index"])) for found in headers]


def test_each_output_has_its_origin(source: DataFrame) -> None:
    rows = routed(ROUTE, source)
    assert origins(rows) == [(0, 0), (0, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert {bytes(row.key) for row in rows} == {b"2026-01-01", b"bank"}


def test_a_key_goes_to_the_partition_that_the_java_client_chooses(source: DataFrame) -> None:
    keys = {bytes(row.key): row.partition for row in routed(ROUTE, source)}
    frame = source.sparkSession.createDataFrame([(key,) for key in keys], "key binary")
    expected = {
        bytes(row.key): row.partition
        for row in frame.select("key", partition_of_key(col("key"), 2).alias("partition")).collect()
    }
    assert keys == expected


def test_what_is_written_is_dropped_pair_by_pair(source: DataFrame) -> None:
    rows = routed(ROUTE, source)
    by_partition = {row.partition: bytes(row.key) for row in rows}
    bank = next(partition for partition, key in by_partition.items() if key == b"bank")
    day = next(row.partition for row in rows if bytes(row.key) != b"bank")

    left = routed(ROUTE, source, {LanePartition(0, bank): OutputOrigin(2, 1)})

    if bank == day:
        assert origins(left) == [(3, 0), (3, 1)]
    else:
        assert origins(left) == [(0, 0), (2, 0), (3, 0), (3, 1)]
    middle = routed(ROUTE, source, {LanePartition(0, partition): OutputOrigin(2, 0) for partition in (0, 1)})
    assert origins(middle) == [(2, 1), (3, 0), (3, 1)]


def with_fields(fields: Callable[[], Mapping[str, Column]]) -> Flow:
    return replace(ROUTE, output_type="FundsAdded", each=None, where=None, fields=fields)


def copied() -> dict[str, Column]:
    return {name: col(name) for name in ("id", "occurredOn", "customerId", "amount")}


def test_a_route_without_each_or_where_has_one_output_for_each_event(source: DataFrame) -> None:
    assert origins(routed(with_fields(copied), source)) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_missing_fields_are_named(source: DataFrame) -> None:
    route = with_fields(lambda: {"id": col("id")})
    with pytest.raises(
        ReadModelError, match=r"gives \['id'\], but foldlake.events.FundsAdded has \['amount'"
    ):
        routed(route, source)


def test_an_output_with_a_null_key_is_not_written(source: DataFrame) -> None:
    route = with_fields(lambda: copied() | {"customerId": when(col("amount") > 1, col("customerId"))})
    assert origins(routed(route, source)) == [(0, 0), (2, 0)]


def test_a_public_field_made_of_a_personal_one_fails_the_query(source: DataFrame) -> None:
    schema = event_schema("FundsAdded")
    personal = replace(
        schema,
        text=schema.text.replace(
            '"name": "customerId",', '"name": "customerId", "foldlake.privacy": "personal",'
        ),
    )
    assert personal.text != schema.text
    route = with_fields(lambda: copied() | {"id": upper(col("customerId"))})
    # A cached property: the value stands in the instance.
    route.__dict__["event_schemas"] = (personal,)
    with pytest.raises(
        ReadModelError, match="makes the public field id of FundsAdded of customerId, which is personal"
    ):
        routed(route, source)
