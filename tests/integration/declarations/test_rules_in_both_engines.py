"""A rule in SQL has one result in Spark and in DuckDB, and one text whether SQL or functions of PySpark say it."""

import hashlib
import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp

from foldlake import testing
from include.declarations.event_types.field_types import self_contained
from include.declarations.event_types.topic_events import EventFormat
from include.declarations.load import load_catalog
from include.declarations.rules.expression import parsed
from include.kafka.record_schema import RecordSchema
from include.settings.systems import SYSTEMS
from spark_jobs.folding.expressions.columns import expression_text
from spark_jobs.folding.fold_fingerprint import fingerprint
from stack.declaration_testing import results

EVENTS = 40
CATALOG = load_catalog(tuple(SYSTEMS / name for name in ("pos", "orders", "logs")))


def texts(rule: object) -> list[str]:
    """Return the texts that the rules compare with, so that events meet their conditions."""
    if isinstance(rule, Mapping):
        return [text for one in rule.values() for text in texts(one)]
    if not isinstance(rule, str):
        return []
    return [literal.name for literal in parsed(rule).find_all(exp.Literal) if literal.is_string]


def value(avro_type: Any, chosen: random.Random, pool: list[str]) -> Any:  # noqa: ANN401, PLR0911 - JSON of any shape
    match avro_type:
        case [*types]:
            return value(chosen.choice(types), chosen, pool)
        case {"logicalType": "decimal"}:
            return Decimal(chosen.randrange(-100_000, 100_000)).scaleb(-avro_type["scale"])
        case {"logicalType": "timestamp-millis"}:
            return testing.FIRST + timedelta(milliseconds=chosen.randrange(1_000))
        case {"type": "record", "fields": fields}:
            return {one["name"]: value(one["type"], chosen, pool) for one in fields}
        case {"type": "array", "items": items}:
            return [value(items, chosen, pool) for _ in range(chosen.randrange(3))]
        case {"type": "enum", "symbols": symbols}:
            return chosen.choice(symbols)
        case {"type": plain}:
            return value(plain, chosen, pool)
    plain_values: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "string": lambda: chosen.choice(pool),
        "boolean": lambda: chosen.random() < 0.2,
        "double": lambda: chosen.randrange(100) / 4,
    }
    return plain_values.get(avro_type, lambda: chosen.randrange(100))()


def events(schemas: tuple[RecordSchema, ...], rules: list[str]) -> list[dict[str, Any]]:
    """Return generated events; those with a lifetime begin at the same time."""
    chosen = random.Random(38)
    pool = [*rules, "", "é"]
    found = []
    for number in range(EVENTS):
        schema = chosen.choice(schemas)
        fields = {
            one["name"]: self_contained(one["type"], schema.parsed()) for one in schema.parsed()["fields"]
        }
        event = {name: value(kind, chosen, pool) for name, kind in fields.items()} | {
            "event_type": schema.name
        }
        if "id" in fields:
            event["id"] = f"event-{number}"
        if schema.key_field is not None:
            event[schema.key_field] = f"key-{chosen.randrange(4)}"
        if schema.lifetime is not None:
            event[schema.lifetime.created] = testing.FIRST
        found.append(event)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(set(CATALOG.models)))
def test_a_fold_has_one_state_in_both_engines(spark: SparkSession, name: str) -> None:
    model = CATALOG.models[name]
    made = events(model.event_schemas, [*texts(dict(model.folds)[1]), *texts(model.ended)])

    assert testing.folded(model, made) == results.folded(spark, model, made)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(CATALOG.emissions))
def test_an_emission_has_one_output_in_both_engines(spark: SparkSession, name: str) -> None:
    emission = CATALOG.emissions[name]
    model = CATALOG.models[emission.read_model]
    made = events(model.event_schemas, texts(emission.where) or ["PURCHASE"])[:12]

    assert testing.emitted(emission, model, made) == results.emitted(spark, emission, model, made)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    sorted(
        route.name
        for route in CATALOG.routes.values()
        if route.each is None and route.source_format is EventFormat.AVRO and not route.of_read_model
    ),
)
def test_a_route_has_one_output_in_both_engines(spark: SparkSession, name: str) -> None:
    route = CATALOG.routes[name]
    made = events(route.event_schemas, [*texts(route.where), *texts(route.fields)])

    written = [
        {name: one for name, one in record.items() if name != "event_type"}
        for record in testing.routed(route, made)
    ]

    assert written
    assert written == results.routed(spark, route, made)


SAME: list[tuple[str, Callable[[], Column]]] = [
    ("a", lambda: F.col("a")),
    ("a.b.c", lambda: F.col("a.b.c")),
    ("sum(-amount)", lambda: F.sum(-F.col("amount"))),
    ("count(CASE WHEN kind = 'X' THEN 1 END)", lambda: F.count(F.when(F.col("kind") == "X", 1))),
    ("count_if(a > 1)", lambda: F.count_if(F.col("a") > 1)),
    (
        "CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END",
        lambda: F.when(F.col("a"), 1).when(F.col("b"), 2).otherwise(3),
    ),
    ("a IN ('x', 'y')", lambda: F.col("a").isin("x", "y")),
    ("NOT a", lambda: ~F.col("a")),
    ("a AND b OR c", lambda: (F.col("a") & F.col("b")) | F.col("c")),
    ("a <=> b", lambda: F.col("a").eqNullSafe(F.col("b"))),
    ("a * 2 + b - 1", lambda: F.col("a") * 2 + F.col("b") - 1),
    ("coalesce(a, '')", lambda: F.coalesce("a", F.lit(""))),
    ("round(a * 0.02, 2)", lambda: F.round(F.col("a") * F.lit(Decimal("0.02")), 2)),
    (
        "max_by(struct(a, b), struct(c, d)).a",
        lambda: F.max_by(F.struct("a", "b"), F.struct("c", "d")).getField("a"),
    ),
    ("bool_or(a)", lambda: F.bool_or("a")),
    ("true", lambda: F.lit(True)),  # noqa: FBT003 - a column
    ("a <= 1.5", lambda: F.col("a") <= F.lit(Decimal("1.5"))),
]


@pytest.mark.parametrize(("text", "build"), SAME, ids=[text for text, _ in SAME])
@pytest.mark.usefixtures("spark")
def test_a_rule_has_the_text_of_the_functions_that_say_the_same(
    text: str, build: Callable[[], Column]
) -> None:
    assert expression_text(text) == expression_text(build)


# SHA-256 of the fingerprints of the last release whose rules were functions of PySpark.
FINGERPRINTS = {
    "balance": "85444659656de50b",
    "loyalty": "dab14c05c2c35b28",
    "order-location": "09a5e82572f69e99",
    "browser-actions": "b8ad9fe01c2f381b",
    "browser-windows": "5fac51f5f1bd957d",
    "products": "32c9289060c63337",
    "product-views": "d300bd02116f6a1f",
}


@pytest.mark.usefixtures("spark")
def test_the_fingerprints_of_the_systems_are_those_of_earlier_releases() -> None:
    """Otherwise, the driver would refuse to continue the states of every home of an earlier release."""
    digests = {
        name: hashlib.sha256(fingerprint(model, 1).encode()).hexdigest()
        for name, model in CATALOG.models.items()
    }

    assert {name: digest[:16] for name, digest in digests.items()} == FINGERPRINTS
