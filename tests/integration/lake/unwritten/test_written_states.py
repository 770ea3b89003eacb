"""A state that cannot be written has no record, stops no query, and returns with a later event: in streams and in batches alike."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.kinds.emission import Emission
from include.declarations.read_model import ReadModel, StateField, decimal_type
from include.kafka.state_record import decode_state_record
from include.position import Position
from include.read_models.balance.model import READ_MODEL
from spark_jobs.folding.decode import EventDecoder
from spark_jobs.folding.expressions.columns import field_columns
from spark_jobs.folding.fold_query import changelog_stream, fold
from spark_jobs.folding.key_events import folded_state
from spark_jobs.folding.written_states import FAILED, aggregated_states
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import emission_rule
from stack.declaration_testing.records import avro_records, schema_ids

SCHEMAS = READ_MODEL.event_schemas
IDS = schema_ids(SCHEMAS)
LARGEST = 2**63 - 1
EXACT = Context(prec=80)


def digits(number: int, scale: int) -> Decimal:
    return EXACT.scaleb(Decimal(number), -scale)


def model(fields: Mapping[str, tuple[Any, Column]]) -> ReadModel:
    """A read model of the balance's events with these fields: Avro type and fold."""
    return replace(
        READ_MODEL,
        state=tuple(StateField(name, kind) for name, (kind, _) in fields.items()),
        folds={1: lambda: {name: column for name, (_, column) in fields.items()}},
        merges={},
    )


def event(customer: str, amount: str) -> dict[str, Any]:
    return {"event_type": "FundsAdded", "customerId": customer, "amount": Decimal(amount)}


@dataclass(frozen=True)
class Case:
    """A field of a read model, events of a key after which it has no value of its type, and one after which it has `value` again."""

    kind: Any
    fold: Callable[[Column], Column]
    events: tuple[str, ...]
    failure: str
    later: str
    value: Any


RANGE, TYPE, ERROR = "a sum is out of range", "its value is none of its type", "an expression fails"
CASES = {
    "long": Case(
        "long", lambda x: F.sum(x.cast("long") * lit(3 * 10**18)), ("2", "2"), RANGE, "-3", 3 * 10**18
    ),
    "int": Case("int", lambda x: F.sum(x.cast("long") * lit(10**9)), ("2", "2"), TYPE, "-3", 10**9),
    "wide": Case(
        decimal_type(38, 2),
        lambda x: F.sum(x * lit(Decimal(10**35)).cast("decimal(38, 0)")),
        ("8", "8"),
        RANGE,
        "-8",
        Decimal(8 * 10**35),
    ),
    "narrow": Case(decimal_type(3, 1), F.sum, ("60", "60"), TYPE, "-30", Decimal("90.0")),
    "nullable": Case(["null", decimal_type(3, 1)], F.sum, ("60", "60"), TYPE, "-30", Decimal("90.0")),
    "missing": Case("long", lambda x: F.max(F.when(x <= 0, 1)), ("1",), TYPE, "-1", 1),
    "quotient": Case("double", lambda x: lit(1.0) / (F.sum(x) - 120), ("60", "60"), ERROR, "1", 1.0),
    "average": Case(decimal_type(3, 1), F.avg, ("120",), TYPE, "0", Decimal("60.0")),
    "item": Case(
        {"type": "array", "items": decimal_type(3, 1)},
        lambda x: F.array(F.sum(x)),
        ("60", "60"),
        TYPE,
        "-30",
        [Decimal("90.0")],
    ),
}
EVENTS = [event(name, amount) for name, case in CASES.items() for amount in case.events]
LATER = [event(name, case.later) for name, case in CASES.items()]


def of_cases() -> ReadModel:
    """A read model with all of these fields: each counts only the amounts of the key with its name."""
    return model(
        {
            name: (case.kind, case.fold(F.when(col("customerId") == name, col("amount")).otherwise(0)))
            for name, case in CASES.items()
        }
    )


def changelog(source: DataFrame, declared: ReadModel) -> dict[str, Row]:
    rows = changelog_stream(source, declared, 1, IDS, 1, 1).collect()
    return {bytes(row.key).decode(): row for row in rows}


def decoded_events(source: DataFrame) -> DataFrame:
    return EventDecoder(SCHEMAS, IDS, 1).decode(source)


def test_a_state_that_cannot_be_written_is_a_removal_until_a_later_event(lake_spark: SparkSession) -> None:
    declared = of_cases()
    before = avro_records(lake_spark, SCHEMAS, [*EVENTS, event("good", "1")])
    after = avro_records(lake_spark, SCHEMAS, [*EVENTS, event("good", "1"), *LATER])

    removed = changelog(before, declared)
    returned = changelog(after, declared)

    assert removed.pop("good").value is not None
    assert {key: row.value for key, row in removed.items()} == dict.fromkeys(CASES)
    for name, row in removed.items():
        headers = {header.key: bytes(header.value).decode() for header in row.headers}
        position = Position.of_removal(headers)
        assert position is not None
        assert position.event_count == len(CASES[name].events)
        assert headers["failure"] == f"field {name}: {CASES[name].failure}"
    schema = declared.state_schema_of(1)
    states = {
        key: decode_state_record(bytes(row.value), lambda _: schema).state for key, row in returned.items()
    }
    assert {name: states[name][name] for name in CASES} == {name: case.value for name, case in CASES.items()}
    assert [row.key for row in fold(declared, 1, decoded_events(before)).collect()] == ["good"]


def test_an_explanation_has_no_state_for_a_key_without_a_record(lake_spark: SparkSession) -> None:
    source = avro_records(lake_spark, SCHEMAS, [event("narrow", "60"), event("narrow", "60")])
    found = folded_state(of_cases(), 1, decoded_events(source))
    assert (found.event_count, found.state) == (2, None)


def test_an_emission_writes_a_dead_letter_for_a_sum_out_of_range(lake_spark: SparkSession) -> None:
    case = CASES["long"]
    emission = Emission(
        "totals",
        "balance",
        "totals",
        "FundsAdded",
        lambda _: {
            "id": col("id"),
            "occurredOn": col("occurredOn"),
            "customerId": col("customerId"),
            "amount": F.coalesce(col("state.total"), lit(0)).cast("decimal(38, 0)") / 10**18,
        },
    )
    emission.__dict__["output_schema"] = SCHEMAS[0]
    declared = model({"total": (["null", "long"], case.fold(col("amount")))})
    source = avro_records(lake_spark, SCHEMAS, [event("a", "2"), event("b", "2"), event("b", "2")])
    query = KeyedQuery(emission_rule(emission, declared, 1), 1, 1, 1, 1, b"key", {}, "totals")

    rows = {bytes(row.key).decode(): row for row in query.records(source, IDS).collect()}

    assert {key: row.topic for key, row in rows.items()} == {"a": "totals", "b": "balance.dead-letter"}
    headers = {header.key: bytes(header.value).decode() for header in rows["b"].headers}
    assert headers["failure"] == "emission totals, fold 1: state, field total: a sum is out of range"


def test_exact_sums_have_the_digits_of_exact_arithmetic_in_any_order(lake_spark: SparkSession) -> None:
    chosen = random.Random(36)
    scales = (0, 2, 20, 37)

    def number(limit: int) -> int:
        return chosen.choice(
            (limit, -limit, chosen.randint(-limit, limit), chosen.randint(-limit, limit) // 10**6)
        )

    rows: list[tuple[Any, ...]] = [
        (
            str(key),
            number(LARGEST),
            digits(number(10**30 - 1), 2),
            *(digits(number(10**38 - 1), scale) for scale in scales),
        )
        for key in range(150)
        for _ in range(1 + key % 4)
    ]
    wide = [f"d{scale}" for scale in scales]
    schema = ", ".join(
        ["k string", "n bigint", "a decimal(30, 2)", *(f"d{scale} decimal(38, {scale})" for scale in scales)]
    )
    columns = [
        *(F.sum(name).alias(name) for name in ("n", *wide)),
        F.avg("a").alias("average"),
        F.count(lit(1)).alias("event_count"),
    ]
    frame = lake_spark.createDataFrame(rows, schema).repartition(3)

    found = aggregated_states(frame.groupBy("k"), columns, check=None).collect()

    for row in found:
        own = [one for one in rows if one[0] == row.k]
        total = sum(one[1] for one in own)
        expected: list[Any] = [total if -LARGEST - 1 <= total <= LARGEST else None]
        for index, scale in enumerate(scales, start=3):
            exact = sum(int(EXACT.scaleb(one[index], scale)) for one in own)
            expected.append(digits(exact, scale) if abs(exact) < 10**38 else None)
        assert [row[name] for name in ("n", *wide)] == expected
        average = EXACT.divide(digits(sum(int(EXACT.scaleb(one[2], 2)) for one in own), 2), len(own))
        assert row.average == average.quantize(Decimal("0.000001"), ROUND_HALF_UP, EXACT)
        assert (row[FAILED] is None) == all(value is not None for value in expected)


def test_the_state_of_a_checkpoint_of_an_earlier_release_goes_on(
    lake_spark: SparkSession, tmp_path: Path
) -> None:
    """Its sums are as they were; its records are checked."""
    declared = model(
        {
            "total": (decimal_type(3, 1), F.sum("amount")),
            "count": ("long", F.sum(col("amount").cast("long"))),
            "half": ("double", F.sum("amount") / F.count(lit(1))),
        }
    )
    folder, found = tmp_path / "records", {}
    folder.mkdir()

    def run(name: str, build: Callable[[DataFrame], DataFrame]) -> None:
        source = lake_spark.readStream.schema(
            "key binary, value binary, partition int, offset bigint, timestamp timestamp"
        )
        query = (
            build(source.parquet(str(folder)))
            .writeStream.outputMode("update")
            .option("checkpointLocation", str(tmp_path / name))
            .foreachBatch(lambda batch, _: found.update({row.key: row for row in batch.collect()}))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    def earlier(source: DataFrame) -> DataFrame:
        events = decoded_events(source)
        columns = [column.alias(name) for name, column in field_columns(declared.folds[1]).items()]
        position = [F.count(lit(1)), F.max("partition"), F.max("offset"), F.max("occurredOn")]
        return events.groupBy(col("customerId").alias("key")).agg(*columns, *position)

    def fold_on(name: str, *, is_exact: bool) -> None:
        run(name, lambda source: changelog_stream(source, declared, 1, IDS, 1, 1, is_exact=is_exact))

    def write(*events: Mapping[str, Any]) -> None:
        avro_records(lake_spark, SCHEMAS, events).coalesce(1).write.mode("append").parquet(str(folder))

    write(event("a", "60"), event("b", "1"))
    run("earlier", earlier)
    assert found["a"].total == 60
    write(event("a", "60"), event("b", "1"))
    for name, is_exact in (("earlier", False), ("new", True)):
        fold_on(name, is_exact=is_exact)
        assert found[b"a"].value is None
        assert found[b"b"].value is not None
    write(event("a", "-30"), event("b", "1"))
    schema = declared.state_schema_of(1)
    for name, is_exact in (("earlier", False), ("new", True)):
        fold_on(name, is_exact=is_exact)
        record = decode_state_record(bytes(found.pop(b"a").value), lambda _: schema)
        assert record.state == {"total": Decimal("90.0"), "count": 90, "half": 30.0}
        assert record.event_count == 3
