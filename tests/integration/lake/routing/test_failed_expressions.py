"""An event for which an expression of a declaration raises an error is a dead letter; all other events are folded and routed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col, expr, lit

from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel, StateField
from include.kafka.record_schema import RecordSchema
from include.read_models.balance.model import READ_MODEL
from spark_jobs.folding.decode import REASON, EventDecoder, undecodable
from spark_jobs.folding.expressions.analysed import expressions_of
from spark_jobs.folding.expressions.failed_expressions import can_raise, raises
from spark_jobs.folding.fold_query import changelog_stream, fold, fold_failure, foldable
from spark_jobs.folding.independent_decode import independently_decoded
from spark_jobs.routing.declared_failures import failure_checks, with_failures
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import emission_rule
from spark_jobs.routing.route_query import RouteQuery
from spark_jobs.streaming.outputs.dead_letter_records import dead_letter_records
from stack.declaration_testing.records import avro_records, schema_ids

CUSTOMERS = ("1", "x", "3", "2", "1")
AMOUNTS = ("5.00", "1.00", "0.00", "2.00", "9.00")
EVENTS = [
    {"event_type": "FundsAdded", "customerId": customer, "amount": Decimal(amount)}
    for customer, amount in zip(CUSTOMERS, AMOUNTS, strict=True)
]
SCHEMAS = READ_MODEL.event_schemas
IDS = schema_ids(SCHEMAS)
OUTPUT = RecordSchema.parse(
    json.dumps(
        {
            "type": "record",
            "name": "Output",
            "foldlake.key": "key",
            "fields": [
                {"name": "key", "type": "string"},
                {"name": "number", "type": ["null", "long"]},
                {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED"]}},
                {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 1}},
                {"name": "tags", "type": {"type": "array", "items": "string"}},
            ],
        }
    ),
    "a test",
)


@pytest.fixture(scope="module")
def source(lake_spark: SparkSession) -> DataFrame:
    """The events, as records of a topic with one partition."""
    return avro_records(lake_spark, SCHEMAS, EVENTS).repartition(1).sortWithinPartitions("offset")


@pytest.fixture(scope="module")
def events(source: DataFrame) -> DataFrame:
    """The decoded events."""
    return EventDecoder(SCHEMAS, IDS, 1).decode(source)


RAISING = {
    "division": "1 / amount",
    "remainder": "1 % cast(amount as int)",
    "cast": "cast(customerId as long)",
    "shared": "(cast(customerId as long) + 1) * cast(customerId as long)",
    "narrow_cast": "cast(amount * 100000000000 as int)",
    "narrow_decimal": "cast(amount as decimal(2, 2))",
    "index": "array(1, 2)[cast(amount as int)]",
    "element": "element_at(array(1), cast(amount as int))",
    "sum": "9223372036854775800 + cast(amount as long)",
    "negation": "-(-9223372036854775807 - cast(amount as long))",
    "wide_decimal": "cast(99999999999999999999999999999999999999 as decimal(38, 0)) * amount",
    "date": "to_date(customerId, 'yyyy')",
    "made_date": "make_date(2026, cast(amount as int), 1)",
    "pattern": "regexp_extract('a', concat('[', customerId), 0)",
    "error": "if(amount > 1, raise_error('no'), 1)",
    "true": "assert_true(amount > 1)",
    "binary": "to_binary(customerId, 'hex')",
    "in_a_function": "transform(array(amount), x -> 1 / x)",
}
HARMLESS = (
    "amount",
    "amount + 1",
    "-amount",
    "if(event_type = 'FundsAdded', amount, -amount)",
    "upper(concat(customerId, '-'))",
    "cast(amount as string)",
    "cast(amount as decimal(20, 2))",
    "cast(amount as double)",
    "try_divide(amount, 0)",
    "try_cast(customerId as long)",
    "coalesce(amount, 0) > 1 and customerId in ('1', '2')",
    "FundsAdded.amount",
    "date_trunc('DAY', occurredOn)",
)


@pytest.fixture(scope="module")
def raised(events: DataFrame) -> Mapping[str, list[bool]]:
    """For each expression, whether it raises an error for each event, computed by one job."""
    conditions = (
        raises(col("event_type").isNotNull(), expr(sql)).alias(name) for name, sql in RAISING.items()
    )
    rows = events.select("offset", *conditions).orderBy("offset").collect()
    return {name: [row[name] for row in rows] for name in RAISING}


@pytest.mark.parametrize("name", RAISING)
def test_an_error_is_found_for_the_events_that_raise_it(
    events: DataFrame, raised: Mapping[str, list[bool]], name: str
) -> None:
    (expression,) = expressions_of(events.select(expr(RAISING[name]).alias("found")))
    assert can_raise(expression)
    assert any(raised[name])
    alone = events.where(col("offset") == raised[name].index(True)).select(expr(RAISING[name]))
    with pytest.raises(Exception, match=r"\[[A-Z_.]+\]|no"):
        alone.collect()


@pytest.mark.parametrize("sql", HARMLESS)
def test_what_cannot_raise_an_error_is_not_computed_twice(events: DataFrame, sql: str) -> None:
    (expression,) = expressions_of(events.select(expr(sql).alias("found")))
    assert not can_raise(expression)


def test_the_fold_of_balances_has_no_cost(events: DataFrame) -> None:
    assert fold_failure(READ_MODEL, 1, events) is None


def rates() -> dict[str, Column]:
    return {
        "rate": F.sum(lit(1.0) / col("amount").cast("double")),
        "newest": F.max(col("customerId").cast("long")),
    }


def model(**changes: Any) -> ReadModel:  # noqa: ANN401 - fields of a read model
    state = (StateField("rate", "double"), StateField("newest", "long"))
    return replace(READ_MODEL, **{"state": state, "folds": {1: rates}, "merges": {}} | changes)


def failures(events: DataFrame, failure: Column | None) -> list[str | None]:
    assert failure is not None
    return [row.found for row in events.select("offset", failure.alias("found")).orderBy("offset").collect()]


def test_a_fold_leaves_out_the_events_that_fail(source: DataFrame, events: DataFrame) -> None:
    assert failures(events, fold_failure(model(), 1, events)) == [
        None,
        "field newest",
        "field rate",
        None,
        None,
    ]
    records = changelog_stream(source, model(), 1, IDS, 1, 1)
    assert sorted(bytes(row.key) for row in records.collect()) == [b"1", b"2"]


def test_a_record_whose_own_key_raises_an_error_is_under_another_key(source: DataFrame) -> None:
    decoder = EventDecoder(SCHEMAS, IDS, 1, lambda: col("customerId").cast("bigint").cast("string"))

    reasons = [row[REASON] for row in decoder.decode(source).orderBy("offset").collect()]

    assert reasons == [None, "invalid_key", None, None, None]
    assert independently_decoded(source, decoder).count() == len(EVENTS) - 1


def test_a_key_that_is_null_or_raises_an_error_fails(events: DataFrame) -> None:
    null = model(key=lambda: F.when(col("amount") > 1, col("customerId")))
    assert failures(events, fold_failure(null, 1, events))[2] == "key"
    raising = model(key=lambda: (lit(1) / col("amount")).cast("string"))
    assert failures(events, fold_failure(raising, 1, events))[2] == "key"


def output(**changes: Column) -> dict[str, Column]:
    fields = {
        "key": col("customerId"),
        "number": lit(1),
        "color": lit("RED"),
        "code": lit(b"1"),
        "tags": F.array(lit("a")),
    }
    return fields | changes


def route(**changes: Any) -> Flow:  # noqa: ANN401 - fields of a route
    declared: dict[str, Any] = {
        "event_types": READ_MODEL.event_types,
        "output_type": "Output",
        "fields": output,
    }
    found = Flow(
        kind="route", name="rates", source_topic="balance", output_topic="rates", **(declared | changes)
    )
    # A cached property: the value stands in the instance.
    found.__dict__["output_schema"] = OUTPUT
    return found


FIELDS: dict[str, Callable[[], Column]] = {
    "number": lambda: (lit(1) / col("amount")).cast("decimal(10, 0)").cast("long"),
    "color": lambda: F.when(col("amount") > 0, "RED").otherwise("BLUE"),
    "code": lambda: F.when(col("amount") > 0, lit(b"1")).otherwise(lit(b"22")),
    "tags": lambda: F.array(lit("a"), F.when(col("amount") > 0, lit("b"))),
    "key": lambda: F.when(col("amount") > 0, col("customerId")),
}


@pytest.mark.parametrize("name", FIELDS)
def test_an_output_that_cannot_be_written_fails(source: DataFrame, events: DataFrame, name: str) -> None:
    query = RouteQuery(route(fields=lambda: output(**{name: FIELDS[name]()})), 1, 1, 1, b"key", {})
    assert failures(events, query.failure(events)) == [None, None, f"field {name}", None, None]
    keys = [bytes(row.key).decode() for row in query.records(source, IDS).collect()]
    assert keys == ["1", "x", "2", "1"]


def test_an_event_that_a_condition_excludes_does_not_fail(source: DataFrame, events: DataFrame) -> None:
    excluding = route(fields=lambda: output(color=FIELDS["color"]()), where=lambda: col("amount") > 0)
    query = RouteQuery(excluding, 1, 1, 1, b"key", {})
    assert failures(events, query.failure(events)) == [None] * 5
    raising = route(where=lambda: lit(1) / col("amount") > 0)
    query = RouteQuery(raising, 1, 1, 1, b"key", {})
    assert failures(events, query.failure(events))[2] == "where"
    assert query.records(source, IDS).count() == 4


def test_an_item_that_fails_keeps_back_all_outputs_of_its_event(source: DataFrame, events: DataFrame) -> None:
    each = route(
        each=lambda: F.array(lit(1), col("amount").cast("int")),
        fields=lambda: output(number=(lit(1) / col("item")).cast("decimal(10, 0)").cast("long")),
    )
    query = RouteQuery(each, 1, 1, 1, b"key", {})
    assert failures(events, query.failure(events)) == [None, None, "field number", None, None]
    assert query.records(source, IDS).count() == 8
    raising = route(each=lambda: F.array(lit(1) / col("amount")))
    query = RouteQuery(raising, 1, 1, 1, b"key", {})
    assert failures(events, query.failure(events))[2] == "each"
    assert query.records(source, IDS).count() == 4


def test_a_route_of_unchanged_events_may_have_a_key_that_fails(source: DataFrame, events: DataFrame) -> None:
    changed = route(output_type=None, fields=None, key=lambda: col("customerId").cast("int").cast("string"))
    query = RouteQuery(changed, 1, 1, 1, b"key", {})
    assert failures(events, query.failure(events)) == [None, "field key", None, None, None]
    assert [bytes(row.key) for row in query.records(source, IDS).collect()] == [b"1", b"3", b"2", b"1"]


def test_one_dead_letter_names_all_declarations_that_fail(events: DataFrame) -> None:
    failing = route(fields=lambda: output(color=FIELDS["color"]()), event_types=("FundsAdded",))
    unusable = route(fields=lambda: output(number=col("nothing")))
    checks = failure_checks([model(), failing, unusable])
    bad = undecodable(with_failures(events, checks))
    rows = dead_letter_records("balance", bad, 1_000_000).collect()
    found = [{header.key: bytes(header.value).decode() for header in row.headers} for row in rows]
    assert [(letter["source_offset"], letter["reason"], letter["failure"]) for letter in found] == [
        ("1", "failed_expression", "read model balance, fold 1: field newest"),
        ("2", "failed_expression", "read model balance, fold 1: field rate; route rates: field color"),
    ]


def test_an_emission_that_fails_writes_a_dead_letter_and_goes_on(source: DataFrame) -> None:
    emission = Emission(
        "rates",
        "balance",
        "rates",
        "Output",
        lambda _revision: output(
            number=(lit(9) / (col("state.amount") - 2)).cast("decimal(10, 0)").cast("long")
        ),
    )
    emission.__dict__["output_schema"] = OUTPUT
    query = KeyedQuery(emission_rule(emission, READ_MODEL, 1), 1, 1, 1, 1, b"key", {}, "rates")
    rows = query.records(source, IDS).collect()
    outputs = {bytes(row.key): row for row in rows}
    assert {key: row.topic for key, row in outputs.items()} == {
        b"1": "rates",
        b"x": "rates",
        b"3": "rates",
        b"2": "balance.dead-letter",
    }
    headers = {header.key: bytes(header.value).decode() for header in outputs[b"2"].headers}
    assert headers["failure"] == "emission rates, fold 1: field number"
    assert (headers["reason"], headers["source_offset"]) == ("failed_expression", "3")


def test_all_that_fold_agree_on_the_events(events: DataFrame) -> None:
    kept = foldable(model(), 1, events)
    states = {row.key: row.event_count for row in fold(model(), 1, kept).collect()}
    assert states == {"1": 2, "2": 1}
