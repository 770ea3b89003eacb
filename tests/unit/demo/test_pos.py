"""The invoices of the system `pos`: always the same, equal to the data set, and equal to what the oracle says of it."""

from collections import Counter
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import duckdb
import pytest

from demo.baskets.dataset import data_file
from demo.examples_page import answers, with_answers
from demo.pos.analysis import EXAMPLES, PAGE, line_items_of_data_set
from demo.pos.branches import compare
from demo.pos.dataset import CANCELLATION, INVOICE, SYSTEM, Sales, read_sales, till_events
from demo.pos.loading import first_string
from demo.pos.made_up import Person, purchase
from demo.pos.oracle import oracle
from include.declarations.load import load_catalog
from include.kafka.events import EventSerializer, GenericEvent


class OneId:
    """A schema registry that gives every schema the same id."""

    def register(self, _topic: str, _schema: object) -> int:
        """Return the id."""
        return 1


FIRST = 4_000


@pytest.fixture(scope="module")
def sales() -> Sales:
    return read_sales()


@pytest.fixture(scope="module")
def events() -> list[GenericEvent]:
    """The events of the oldest invoices."""
    oldest = read_sales(FIRST)
    return [one.event(oldest) for one in till_events(oldest)]


@pytest.fixture(scope="module")
def expected() -> duckdb.DuckDBPyConnection:
    return oracle(FIRST)


def values(events: list[GenericEvent], schema: object) -> list[Mapping[str, Any]]:
    return [event.values for event in events if event.schema is schema]


def test_every_basket_is_an_invoice_with_all_of_its_line_items(sales: Sales) -> None:
    assert len(sales) == 155_848
    assert sales.starts[-1] == 1_469_307
    assert int(sales.items["cents"].sum()) == 459_603_958


def test_events_are_ordered_by_time_and_an_invoice_precedes_its_cancellation(sales: Sales) -> None:
    found = till_events(sales)
    at = {one.event_id(sales): number for number, one in enumerate(found)}

    assert found == sorted(found)
    assert len(at) == len(found) == 155_848 + 415
    cancelled = [name.partition("-")[2] for name in at if name.startswith("cancellation-")]
    assert all(at[f"invoice-{basket}"] < at[f"cancellation-{basket}"] for basket in cancelled)


def test_a_smaller_load_has_the_same_events(sales: Sales, events: list[GenericEvent]) -> None:
    whole = {one.event_id(sales): one for one in till_events(sales)}

    assert all(whole[event.values["id"]].event(sales) == event for event in events)


def test_an_invoice_adds_up(events: list[GenericEvent]) -> None:
    for invoice in values(events, INVOICE):
        items = invoice["invoiceLineItems"]
        assert invoice["totalAmount"] == sum(item["totalValue"] for item in items)
        assert invoice["numberOfItems"] == len(items)
        for item in items:
            count = max(item["itemQty"], 1)
            assert abs(item["itemPrice"] * count - item["totalValue"]) <= Decimal("0.00005") * count


def test_only_prime_invoices_are_cancelled_and_the_cancellation_repeats_the_invoice(
    events: list[GenericEvent],
) -> None:
    invoices = {invoice["invoiceNumber"]: invoice for invoice in values(events, INVOICE)}
    cancellations = values(events, CANCELLATION)

    assert cancellations
    for cancellation in cancellations:
        invoice = invoices[cancellation["invoiceNumber"]]
        assert invoice["customerType"] == "PRIME"
        shared = ("storeId", "customerCardNo", "customerType", "totalAmount")
        assert [cancellation[name] for name in shared] == [invoice[name] for name in shared]


def test_what_is_made_up_is_always_the_same() -> None:
    person = Person(1)
    made_up = purchase(31198570044)

    assert (person.card, person.contact) == ("1791412060619272", "+999-5017447952")
    assert (made_up.till, made_up.is_delivered, made_up.cancelled_after_days) == (3, False, None)


def test_no_two_households_have_the_same_card_or_telephone_number(sales: Sales) -> None:
    people = [Person(household) for household in set(sales.items["household_id"].tolist())]

    assert len({person.card for person in people}) == 2_469
    assert len({person.contact for person in people}) == 2_469


def test_only_deliveries_have_an_address(events: list[GenericEvent]) -> None:
    for invoice in values(events, INVOICE):
        assert (invoice["deliveryAddress"] is not None) == (invoice["deliveryType"] == "HOME-DELIVERY")


def test_the_events_are_what_the_oracle_says(
    events: list[GenericEvent], expected: duckdb.DuckDBPyConnection
) -> None:
    shipments = [
        (one["id"], one["storeId"], one["totalAmount"], one["numberOfItems"])
        for one in values(events, INVOICE)
        if one["deliveryType"] == "HOME-DELIVERY"
    ]
    items = [
        (
            *(
                f"{one['id']}/{number}",
                one["storeId"],
                one["invoiceNumber"],
                item["itemCode"],
                item["itemQty"],
            ),
            *(item["totalValue"], one["customerType"], one["deliveryType"]),
        )
        for one in values(events, INVOICE)
        for number, item in enumerate(one["invoiceLineItems"], start=1)
    ]

    assert Counter(shipments) == Counter(expected.execute("from expected_shipments").fetchall())
    assert Counter(items) == Counter(expected.execute("from expected_trend").fetchall())


def test_the_points_are_what_the_oracle_says(
    events: list[GenericEvent], expected: duckdb.DuckDBPyConnection
) -> None:
    points: dict[str, Decimal] = {}
    for event in events:
        if event.values["customerType"] == "PRIME":
            earned = (event.values["totalAmount"] / 50).quantize(Decimal("0.01"), ROUND_HALF_UP)
            sign = -1 if event.schema is CANCELLATION else 1
            card = event.values["customerCardNo"]
            points[card] = points.get(card, Decimal(0)) + sign * earned

    assert points == dict(expected.execute("select id, points from expected_points").fetchall())


def test_the_oracle_has_the_whole_data_set() -> None:
    connection = oracle()
    counts = {
        name: connection.execute(f"select count(*) from expected_{name}").fetchone()  # noqa: S608
        for name in ("shipments", "trend", "loyalty", "points")
    }

    assert counts == {"shipments": (39_007,), "trend": (1_469_307,), "loyalty": (82_232,), "points": (801,)}
    total = connection.execute('select sum("totalValue") from expected_trend').fetchone()
    raw = connection.execute(
        "select sum(round(sales_value * 100))::bigint from read_parquet(?)", [str(data_file("transactions"))]
    ).fetchone()
    assert (total, raw) == ((Decimal("4596039.58"),), (459_603_958,))


def test_the_comparison_finds_what_is_missing_doubled_and_wrong(expected: duckdb.DuckDBPyConnection) -> None:
    result = compare(
        expected,
        "faults",
        "select * from (values ('a', 1), ('b', 2), ('c', 3)) as e(id, amount)",
        "select * from (values ('a', 1), ('a', 1), ('b', 9), ('x', 4)) as f(id, amount)",
    )

    assert (result.expected, result.found) == (3, 4)
    assert (result.missing, result.doubled, result.wrong) == (1, 1, 2)
    assert result.examples == ("b", "c", "x")
    assert not result.is_exact


def test_the_id_of_an_event_is_read_without_decoding_the_rest(events: list[GenericEvent]) -> None:
    serializer = EventSerializer(OneId(), "t")

    assert [first_string(serializer.serialize(event)) for event in events[:50]] == [
        event.values["id"] for event in events[:50]
    ]
    assert [
        first_string(value) for value in (b"", b"\0\0\0\0\1", b"\0\0\0\0\1\x80", b"\0\0\0\0\1\x10ab")
    ] == [None] * 4


def test_the_page_has_the_answers_to_its_examples() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_answers(page, answers(line_items_of_data_set(), EXAMPLES)), (
        "run `python -m demo.pos.analysis`"
    )


def test_the_example_of_the_lookup_is_a_card_with_points(expected: duckdb.DuckDBPyConnection) -> None:
    (api,) = (api for api in load_catalog((SYSTEM,)).apis if api.model.name == "loyalty")

    assert [lookup.example for lookup in api.lookups] == [Person(1).card]
    assert Person(1).card in {
        card for (card,) in expected.execute("select id from expected_points").fetchall()
    }
