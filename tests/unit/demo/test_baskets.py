"""The grocer's baskets as events: checks the exact numbers of the data set."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from demo.baskets.comparison import expected_accounts
from demo.baskets.dataset import Basket, Baskets, read_baskets
from demo.baskets.loading import Account, Ledger
from include.read_models.balance.events import FundsAdded

BASKET = Basket(basket_id=31198570044, household_id=900, total_cents=50, bought_at_us=1_483_271_606_000_000)


@pytest.fixture(scope="module")
def baskets() -> Baskets:
    return read_baskets()


def test_every_basket_with_a_nonzero_total_becomes_an_event(baskets: Baskets) -> None:
    assert len(baskets.events) == 155_370
    assert baskets.skipped == 478


def test_amounts_are_above_zero_and_add_up_to_the_cent(baskets: Baskets) -> None:
    assert min(basket.total_cents for basket in baskets.events) > 0
    assert sum(basket.total_cents for basket in baskets.events) == 459_603_958


def test_every_basket_has_a_known_household(baskets: Baskets) -> None:
    assert len({basket.basket_id for basket in baskets.events}) == len(baskets.events)
    assert len({basket.household_id for basket in baskets.events}) == 2469


def test_baskets_are_ordered_by_time(baskets: Baskets) -> None:
    order = [(basket.bought_at_us, basket.basket_id) for basket in baskets.events]

    assert order == sorted(order)


def test_a_basket_always_gives_the_same_event() -> None:
    assert BASKET.event() == FundsAdded(
        id="basket-31198570044",
        customerId="900",
        amount=Decimal("0.50"),
        occurredOn=datetime(2017, 1, 1, 11, 53, 26, tzinfo=UTC),
    )


def test_other_events_of_a_household_are_counted() -> None:
    ledger = Ledger(others={"900": Account(Decimal("-0.20"), 1), "you": Account(Decimal("5.00"), 1)})

    assert expected_accounts([BASKET, BASKET], ledger) == {"900": Account(Decimal("0.80"), 3)}
