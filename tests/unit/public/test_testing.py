"""Tests of declarations with DuckDB: the state, the outputs, and clear errors for what only Spark computes."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from foldlake import testing
from include.declarations.load import load_catalog
from include.errors import FoldlakeError
from include.read_models.balance.model import READ_MODEL as BALANCE
from include.settings.systems import SYSTEMS

CATALOG = load_catalog((SYSTEMS / "pos", SYSTEMS / "logs"))


def funds(event_type: str, customer: str, amount: str) -> dict[str, Any]:
    return {"event_type": event_type, "customerId": customer, "amount": Decimal(amount)}


def test_a_fold_gives_the_state_of_each_key() -> None:
    events = [
        funds("FundsAdded", "b", "10.00"),
        funds("FundsWithdrawn", "b", "2.50"),
        funds("FundsAdded", "a", "1"),
    ]

    assert testing.folded(BALANCE, events) == {
        "a": {"amount": Decimal("1.00")},
        "b": {"amount": Decimal("7.50")},
    }
    assert testing.folded(BALANCE, []) == {}


def test_an_emission_has_the_state_after_each_event() -> None:
    emission = CATALOG.emissions["captcha-requests"]
    action = {"browserHash": "b", "kind": "ACTION", "action": "buy", "solved": False}

    emitted = testing.emitted(emission, CATALOG.models["browser-actions"], [action] * 7)

    assert [(record["browserHash"], record["actions"]) for record in emitted] == [("b", 5)]


def test_an_order_that_has_ended_has_no_state() -> None:
    model = load_catalog((SYSTEMS / "orders",)).models["order-location"]
    update = {
        "orderNumber": "1",
        "courier": "c",
        "latitude": 1.0,
        "longitude": 2.0,
        "placedOn": testing.FIRST,
    }

    assert testing.folded(model, [update | {"status": "PLACED"}])["1"]["status"] == "PLACED"
    assert testing.folded(model, [update | {"status": one} for one in ("DELIVERED", "PLACED")]) == {}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            {"customerId": "a", "amount": Decimal(1)},
            "event_type of event 0 is None; allowed: FundsAdded, FundsWithdrawn",
        ),
        (funds("FundsLost", "a", "1"), "event_type of event 0 is 'FundsLost'"),
        (
            funds("FundsAdded", "a", "1") | {"cents": 1},
            "FundsAdded has no field cents; its fields: id, occurredOn",
        ),
    ],
)
def test_an_event_of_another_type_is_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(FoldlakeError, match=message):
        testing.folded(BALANCE, [event])


@pytest.mark.parametrize(
    "expression",
    [
        "sum(amount / 2)",
        "sum(cast(amount AS int))",
        "count_if(customerId RLIKE 'a')",
        "max(unix_millis(occurredOn))",
    ],
)
def test_a_rule_that_may_differ_between_the_engines_is_refused(expression: str) -> None:
    with pytest.raises(
        FoldlakeError, match="may have another result in DuckDB: test the declaration with Spark"
    ):
        testing.folded(
            replace(BALANCE, folds={1: {"amount": expression}}),
            [{"event_type": "FundsAdded", "customerId": "1"}],
        )


def test_functions_and_arrays_need_spark() -> None:
    with pytest.raises(FoldlakeError, match="Fold 1 of balance is a function"):
        testing.folded(replace(BALANCE, folds={1: dict}), [])
    with pytest.raises(FoldlakeError, match="Route trend has `each`"):
        testing.routed(CATALOG.routes["trend"], [])
