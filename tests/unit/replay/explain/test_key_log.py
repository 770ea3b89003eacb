"""A key's events in DuckDB: which are shown, with which state after each, from a version's start on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    type_column,
)
from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel
from include.declarations.topic_options import EventsTopic, TopicOptions
from include.position import Offsets
from include.replay.explain.key_log import TableKeyLog, is_record_key
from include.replay.fold_sql import NotTranslatedError, fold_sql
from include.replay.log_events import event_schema
from include.settings.systems import known_systems, system_folder
from include.versions.explanation import object_of

EXAMPLES = load_catalog(tuple(map(system_folder, known_systems())))
BALANCE, ORDERS = EXAMPLES.models["balance"], EXAMPLES.models["order-location"]
START = datetime(2026, 1, 1, tzinfo=UTC)
ENDS = Offsets({0: 100})


def event_of(offset: int, key: str, event_type: str, **fields: object) -> dict[str, Any]:
    """Return an event at this offset as a row of a batch; it occurred as many days after the start."""
    occurred_on = START + timedelta(days=offset)
    return {
        KEY: key,
        PARTITION: 0,
        OFFSET: offset,
        TIMESTAMP: occurred_on,
        EVENT_TYPE: event_type,
        type_column(event_type): {"occurredOn": occurred_on, **fields},
    }


def funds(offset: int, amount: str, key: str = "me", event_type: str = "FundsAdded") -> dict[str, Any]:
    return event_of(offset, key, event_type, id=f"e{offset}", customerId=key, amount=Decimal(amount))


def log_of(model: ReadModel, rows: list[dict[str, Any]], key: str = "me") -> TableKeyLog:
    # In two batches.
    parts = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    batches = [pa.RecordBatch.from_pylist(part, schema=event_schema(model)) for part in parts]
    log = TableKeyLog(model, key, [fold_sql(model, 1)], (Offsets(), ENDS), lambda _: ())
    log.add(batches)
    return log


def test_each_event_has_the_state_after_it() -> None:
    rows = [funds(3, "5.00"), funds(4, "9.99", "other"), funds(7, "2.50", event_type="FundsWithdrawn")]

    added, withdrawn = log_of(BALANCE, rows).explained_events(1, Offsets(), 20, ())

    assert (added.number, added.partition, added.offset, added.event_type) == (1, 0, 3, "FundsAdded")
    assert (added.written_at, added.occurred_on) == ("2026-01-04T00:00:00.000Z", "2026-01-04T00:00:00.000Z")
    assert added.event == '{"id":"e3","customerId":"me","amount":5.00}'
    assert (added.state, withdrawn.state) == ('{"amount":5.00}', '{"amount":2.50}')
    assert (withdrawn.number, withdrawn.offset, withdrawn.event_type) == (2, 7, "FundsWithdrawn")


def test_the_first_and_the_newest_events_are_shown_and_all_are_folded() -> None:
    log = log_of(BALANCE, [funds(n, "1.00") for n in range(10)])

    found = log.explained_events(1, Offsets(), 2, ("FundsAdded.customerId", "FundsWithdrawn.amount"))

    assert [one.number for one in found] == [1, 2, 9, 10]
    assert [object_of(one.state) for one in found] == [{"amount": Decimal(n)} for n in (1, 2, 9, 10)]
    assert object_of(found[0].event) == {"id": "e0", "amount": Decimal(1)}


def test_events_before_the_start_of_a_version_do_not_count() -> None:
    log = log_of(BALANCE, [funds(n, "1.00") for n in range(10)])
    starts = Offsets({0: 7, 1: 50})

    assert [one.offset for one in log.explained_events(1, starts, 20, ())] == [7, 8, 9]
    assert log.folded_state(1, starts).event_count == 3
    assert log.folded_state(1, starts).state == '{"amount":3.00}'


def test_a_key_without_events_has_no_state() -> None:
    log = log_of(BALANCE, [funds(1, "1.00")], "nobody")

    assert log.explained_events(1, Offsets(), 20, ()) == []
    assert (log.folded_state(1, Offsets()).event_count, log.folded_state(1, Offsets()).state) == (0, None)


def test_an_item_has_no_state_from_its_end_on() -> None:
    def location(offset: int, status: str) -> dict[str, Any]:
        place: dict[str, object] = {
            "courier": "c",
            "latitude": float(offset),
            "longitude": 1e-4,
            "placedOn": START,
        }
        return event_of(offset, "O-1", "OrderLocation", orderNumber="O-1", status=status, **place)

    statuses = ("PLACED", "ON_THE_WAY", "DELIVERED", "ON_THE_WAY")
    log = log_of(ORDERS, [location(n, status) for n, status in enumerate(statuses)], "O-1")

    found = log.explained_events(1, Offsets(), 20, ())

    assert [one.state is None for one in found] == [False, False, True, True]
    assert found[1].state == (
        '{"courier":"c","latitude":1.0,"longitude":1.0E-4,"status":"ON_THE_WAY",'
        '"placed_on":"2026-01-01T00:00:00.000Z","located_on":"2026-01-02T00:00:00.000Z"}'
    )
    assert (log.folded_state(1, Offsets()).event_count, log.folded_state(1, Offsets()).state) == (4, None)


def test_a_state_that_cannot_be_written_is_none() -> None:
    model = replace(BALANCE, folds={1: {"amount": "sum(CASE WHEN offset > 1 THEN amount END)"}})

    found = log_of(model, [funds(1, "1.00"), funds(2, "1.00")]).explained_events(1, Offsets(), 20, ())

    assert [one.state for one in found] == [None, '{"amount":1.00}']


def test_a_rule_with_a_column_that_the_table_has_itself_is_left_to_spark() -> None:
    model = replace(BALANCE, folds={1: {"amount": "sum(CASE WHEN key IS NOT NULL THEN amount END)"}})

    with pytest.raises(NotTranslatedError, match="named as one of is_source_key, key"):
        log_of(model, [])


def test_a_value_out_of_range_is_left_to_spark() -> None:
    model = replace(BALANCE, folds={1: {"amount": "sum(amount * 1000000000000000000000)"}})
    log = log_of(model, [funds(n, "9999999999999999.00") for n in range(10)])

    with pytest.raises(duckdb.Error):
        log.folded_state(1, Offsets())


@pytest.mark.parametrize("name", EXAMPLES.models)
def test_the_rules_of_the_examples_are_computed(name: str) -> None:
    model = EXAMPLES.models[name]
    log = TableKeyLog(
        model, "me", [fold_sql(model, one) for one in model.folds], (Offsets(), ENDS), lambda _: ()
    )

    for revision in model.folds:
        assert log.explained_events(revision, Offsets(), 20, ()) == []
        assert log.folded_state(revision, Offsets()).state is None


def test_the_key_determines_the_partition_if_it_is_the_entity_of_all_events() -> None:
    assert is_record_key(BALANCE)
    assert is_record_key(ORDERS)
    assert not is_record_key(replace(BALANCE, key="concat_ws('/', customerId, id)"))
    assert not is_record_key(replace(BALANCE, key="id"))
    assert is_record_key(replace(BALANCE, key="id", rekeyed_from=EventsTopic("others", TopicOptions())))
