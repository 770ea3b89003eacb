"""What `stack/declaration_testing` computes is what the stream driver would write: the same plan, from source record to written record."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from include.declarations.catalog import Catalog
from include.declarations.event_types.event_schemas import event_schema
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel, StateField, decimal_type
from include.errors import FoldlakeError, ReadModelError
from include.settings import CHECKOUT
from stack.declaration_testing.records import DeadLetter
from stack.declaration_testing.results import dead_letters, emitted, folded, routed, ticked
from tests.support.read_models_with_rekey import daily_deposits

SYSTEMS = CHECKOUT / "demo" / "systems"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    folders = [SYSTEMS / name for name in ("logs", "orders", "pos")]
    return load_catalog((*folders, CHECKOUT / "tests" / "support" / "read_models_with_rekey"))


def deposit(customer: str, amount: str, time: datetime = NOON) -> dict[str, Any]:
    return {"customerId": customer, "amount": Decimal(amount), "occurredOn": time}


def deposits(field: StateField, fold: "Column") -> ReadModel:
    """A read model of one field."""
    return ReadModel(
        name="trial",
        source_topic="balance",
        event_types=("FundsAdded",),
        key=lambda: F.col("customerId"),
        state=(field,),
        folds={1: lambda: {field.name: fold}},
    )


def test_a_state_has_the_types_of_its_changelog_record(spark: SparkSession) -> None:
    third = deposits(StateField("third", decimal_type(18, 2)), F.sum("amount") / 3)

    assert folded(spark, third, [deposit("a", "7.01")]) == {"a": {"third": Decimal("2.34")}}


def test_a_rekeyed_read_model_is_folded_as_loaded_and_as_declared(
    spark: SparkSession, catalog: Catalog
) -> None:
    events = [
        deposit("a", "1.00"),
        deposit("b", "2.50"),
        deposit("a", "4.00", NOON + timedelta(days=1)),
    ]
    states = {
        "2026-01-31": {"deposits": 2, "total": Decimal("3.50")},
        "2026-02-01": {"deposits": 1, "total": Decimal("4.00")},
    }

    assert folded(spark, catalog.models["daily-deposits"], events) == states
    assert folded(spark, daily_deposits.READ_MODEL, events) == states


@pytest.mark.parametrize("is_loaded", [True, False])
def test_an_emission_counts_the_events_of_the_read_model_s_key(
    spark: SparkSession, catalog: Catalog, is_loaded: bool
) -> None:
    model = catalog.models["daily-deposits"] if is_loaded else daily_deposits.READ_MODEL
    emission = Emission(
        name="trial",
        read_model=model.name,
        output_topic="trial",
        output_type="FundsAdded",
        fields=_of_state,
    )
    events = [deposit("a", "1.00"), deposit("b", "2.00"), deposit("a", "4.00")]

    written = emitted(spark, emission, model, events)

    assert [one["amount"] for one in written] == [Decimal("1.00"), Decimal("3.00"), Decimal("7.00")]
    assert [one["id"] for one in written] == ["1", "2", "3"]


def _of_state(_revision: int) -> Mapping[str, Column]:
    return {
        "id": F.col("state.deposits").cast("string"),
        "occurredOn": F.col("occurredOn"),
        "customerId": F.col("customerId"),
        "amount": F.col("state.total"),
    }


def test_an_emission_has_no_record_for_the_newest_event_of_another_key(spark: SparkSession) -> None:
    """Keys that begin with the entity: the events of one entity have several of them."""
    by_day = replace(
        deposits(StateField("deposits", "long"), F.count(F.lit(1))),
        key=lambda: F.concat_ws("/", "customerId", F.date_format("occurredOn", "dd")),
    )
    emission = Emission(
        name="trial",
        read_model="trial",
        output_topic="trial",
        output_type="FundsAdded",
        fields=lambda _: {
            "id": F.col("state.deposits").cast("string"),
            "occurredOn": F.col("occurredOn"),
            "customerId": F.col("customerId"),
            "amount": F.col("amount"),
        },
    )
    events = [deposit("a", "1.00"), deposit("a", "2.00", NOON + timedelta(days=1)), deposit("a", "3.00")]

    written = emitted(spark, emission, by_day, events)

    assert [(one["id"], one["amount"]) for one in written] == [
        ("1", Decimal("1.00")),
        ("1", Decimal("2.00")),
        ("2", Decimal("3.00")),
    ]


def test_a_route_reads_json(spark: SparkSession, catalog: Catalog) -> None:
    route = catalog.routes["product-views"]
    views: list[Any] = [
        {
            "logger_name": "product-views",
            "@timestamp": "2026-01-31T12:00:00Z",
            "product_id": "7",
            "thread_name": "t",
        },
        {"logger_name": "others", "@timestamp": "2026-01-31T12:00:00Z"},
        '{"logger_name": "product-views", "@timestamp": "2026-01-31T12:00:01Z", "product_id": "8", "thread_name": "t"}',
    ]

    assert [one["productId"] for one in routed(spark, route, views)] == ["7", "8"]
    assert dead_letters(spark, route, [*views, "{"]) == [DeadLetter(3, "malformed_json")]


def test_a_periodic_emission_writes_the_state_of_every_key(spark: SparkSession, catalog: Catalog) -> None:
    emission = catalog.periodic["product-view-counts"]
    views = [{"event_type": "ProductView", "productId": name} for name in ("8", "7", "8")]

    written = ticked(spark, emission, catalog.models["product-views"], views, NOON)

    assert [(one["productId"], one["views"], one["asOf"]) for one in written] == [
        ("7", 1, NOON),
        ("8", 2, NOON),
    ]


def test_an_item_that_has_ended_has_no_state(spark: SparkSession, catalog: Catalog) -> None:
    def located(order: str, status: str) -> dict[str, Any]:
        place = {"courier": "c", "latitude": 1.5, "longitude": 2.5}
        return {"orderNumber": order, "status": status, "placedOn": NOON, "occurredOn": NOON, **place}

    events = [located("1", "PLACED"), located("2", "PLACED"), located("1", "DELIVERED")]

    states = folded(spark, catalog.models["order-location"], events)

    assert list(states) == ["2"]
    assert states["2"]["placed_on"] == NOON


def test_an_event_that_the_driver_refuses_is_refused(spark: SparkSession) -> None:
    model = deposits(StateField("deposits", "long"), F.count(F.lit(1)))
    events = [deposit("a", "1.00"), deposit("x" * 257, "1.00")]

    with pytest.raises(
        FoldlakeError, match="Event 1 would be a dead letter of balance, with the reason invalid_key"
    ):
        folded(spark, model, events)
    assert folded(spark, model, events, allow_dead_letters=True) == {"a": {"deposits": 1}}
    assert dead_letters(spark, model, events) == [DeadLetter(1, "invalid_key")]


def test_a_read_model_that_the_driver_refuses_is_refused(spark: SparkSession) -> None:
    model = replace(
        deposits(StateField("deposits", "long"), F.count(F.lit(1))),
        key=lambda: F.date_format("occurredOn", "yyyy-MM-dd"),
    )

    with pytest.raises(ReadModelError, match="customerId"):
        folded(spark, model, [deposit("a", "1.00")])


@pytest.mark.parametrize(
    ("field", "fold", "failure", "kept"),
    [
        (
            StateField("total", decimal_type(3, 1)),
            lambda: F.sum("amount"),
            "field total: its value is none of its type",
            "a",
        ),
        (StateField("ratio", "double"), lambda: F.max(F.lit(1) / (F.col("amount") - 5)), "ratio", "b"),
    ],
)
def test_a_state_that_the_driver_cannot_write_is_refused(
    spark: SparkSession, field: StateField, fold: Callable[[], Column], failure: str, kept: str
) -> None:
    model = deposits(field, fold())
    events = [deposit("a", "5.00"), deposit("b", "210.30")]

    with pytest.raises(FoldlakeError, match=failure):
        folded(spark, model, events)
    assert list(folded(spark, model, events, allow_dead_letters=True)) == [kept]


def keyed(**rule: Any) -> Flow:  # noqa: ANN401 - of any field's type
    """A flow of deposits with the state of each customer."""
    return Flow("trial", "trial", "balance", ("FundsAdded",), "trials", **rule)


def test_a_flow_with_a_state_sees_the_state_after_each_event(spark: SparkSession) -> None:
    rule = keyed(
        where=lambda: (F.col("state.event_count") == 1) | (F.col("state.largest") >= 10),
        state=lambda: {"largest": F.max("amount")},
    )
    events = [
        deposit("a", "1.00"),
        deposit("b", "2.00"),
        deposit("a", "3.00"),
        deposit("a", "10.00"),
        deposit("b", "4.00"),
    ]

    found = routed(spark, rule, events)

    assert [(one["customerId"], one["amount"]) for one in found] == [
        ("a", Decimal("1.00")),
        ("b", Decimal("2.00")),
        ("a", Decimal("10.00")),
    ]


def test_an_expression_of_a_flow_with_a_state_that_fails_is_a_dead_letter(spark: SparkSession) -> None:
    of_event = keyed(state=lambda: {"inverse": F.max(1 / (F.col("amount") - 5))})
    events = [deposit("a", "5.00"), deposit("a", "6.00")]
    assert dead_letters(spark, of_event, events) == [
        DeadLetter(0, "failed_expression", "trial trial: field inverse")
    ]
    assert len(routed(spark, of_event, events, allow_dead_letters=True)) == 1

    of_state = keyed(state=dict, where=lambda: 1 / (F.col("state.event_count") - 2) < 0)
    assert dead_letters(spark, of_state, events) == []
    with pytest.raises(FoldlakeError, match=r"Event 1 .*trial trial: where"):
        routed(spark, of_state, [deposit("a", "6.00"), deposit("a", "7.00")])


@pytest.mark.parametrize("name", ["state.who", "state"])
def test_a_state_of_a_personal_field_is_not_published(spark: SparkSession, name: str) -> None:
    schema = event_schema("FundsAdded")
    marked = '"name": "customerId", "foldlake.privacy": "personal",'
    personal = replace(schema, text=schema.text.replace('"name": "customerId",', marked))

    def flow(**fields: Column) -> Flow:
        same = {field: F.col(field) for field in ("customerId", "amount", "occurredOn")}
        found = keyed(
            output_type="FundsAdded", fields=lambda: same | fields, state=lambda: {"who": F.max("customerId")}
        )
        # Cached properties: the values stand in the instance.
        found.__dict__.update(event_schemas=(personal,), output_schema=personal)
        return found

    with pytest.raises(
        ReadModelError, match="makes the public field id of FundsAdded of customerId, which is personal"
    ):
        routed(spark, flow(id=F.col(name).cast("string")), [deposit("a", "1.00")])

    count = flow(id=F.col("state.event_count").cast("string"))
    assert [one["id"] for one in routed(spark, count, [deposit("a", "1.00"), deposit("a", "2.00")])] == [
        "1",
        "2",
    ]
