"""Generated events, stored records and faults: both engines give the same verdict, and report the same keys."""

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka import murmur2
from pyspark.sql import SparkSession

from foldlake.testing import folded
from include.declarations.read_model import ReadModel
from include.kafka.topic_state import source_state
from include.lake.tables import table_path
from include.lake.tags import CommitTag
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.read_models.balance.events import FundsAdded, FundsWithdrawn
from include.settings import Settings
from spark_jobs.lake.lake_table import LakeTable
from tests.support.changelog_writer import OCCURRED_ON
from tests.support.lake.both_engines import checked_by_both
from tests.support.lake.checked_ledger import CheckedLedger

# Aggregates of several types and shapes. All of them can be merged.
MODULE = """
from foldlake import StateField, decimal_type
from dataclasses import replace
from include.read_models.balance import model
STATE = (
    StateField("amount", decimal_type(38, 2)),
    StateField("additions", "long"),
    StateField("largest", ["null", decimal_type(18, 2)]),
    StateField("has_withdrawal", "boolean"),
    StateField("smallest_withdrawal", ["null", decimal_type(18, 2)]),
    StateField("last_id", "string"),
)
FOLD = {{
    "amount": "sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount ELSE amount END)",
    "additions": "count_if(event_type = 'FundsAdded')",
    "largest": "max(FundsAdded.amount)",
    "has_withdrawal": "bool_or(event_type = 'FundsWithdrawn')",
    "smallest_withdrawal": "min(amount) FILTER (WHERE event_type = 'FundsWithdrawn')",
    "last_id": "max(id)",
}}
DECLARATIONS = [
    replace(model.READ_MODEL, name={name!r}, source_topic={name!r}, key={key}, state=STATE, folds={{1: FOLD}})
]
"""
KEYS, EVENTS = 30, 120
EVENT_TYPES = {"FundsAdded": FundsAdded, "FundsWithdrawn": FundsWithdrawn}
Row = dict[str, Any]


class GeneratedLedger:
    """Generated events of some keys, and the rows of the lake as of any position of each key."""

    def __init__(self, settings: Settings, name: str, seed: int) -> None:
        self.ledger = CheckedLedger(settings, name, module=MODULE)
        self.model: ReadModel = self.ledger.model
        self.chosen = random.Random(seed)
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.verified: dict[str, int] = {}
        self._next: dict[int, int] = {}
        self.partitions = settings.topics.partitions

    def append(self, number: int) -> None:
        """Append events of random keys."""
        for _ in range(number):
            key = f"key {self.chosen.randrange(KEYS)}/é"
            name = self.chosen.choice(list(EVENT_TYPES))
            amount = Decimal(self.chosen.randrange(1, 10**9)) / 100
            identifier = f"{self.chosen.choice('aäß€😀')}-{self.chosen.randrange(1000)}"
            event = EVENT_TYPES[name](customerId=key, amount=amount, id=identifier, occurredOn=OCCURRED_ON)
            source = self.ledger.source
            source.append_raw(key.encode(), source.serializer.serialize(event))
            partition = murmur2(key.encode(), self.partitions)
            offset = self._next.get(partition, 0)
            self._next[partition] = offset + 1
            fields = {"customerId": key, "amount": amount, "id": identifier, "event_type": name}
            self.events.setdefault(key, []).append({"fields": fields, "at": (partition, offset)})
        self.ledger.source.flush()

    def row(self, key: str, number: int) -> Row:
        """Return the right row of a key after its first events."""
        first = self.events[key][:number]
        (state,) = folded(self.model, [event["fields"] for event in first]).values()
        partition, offset = first[-1]["at"]
        position = {"event_count": number, "source_partition": partition, "source_offset": offset}
        return {"key": key, **state, **position, "occurred_on": OCCURRED_ON}

    def rows(self) -> Iterator[Row]:
        """Yield the right row of each key, after all of its events."""
        for key, events in self.events.items():
            yield self.row(key, len(events))

    def faulty_rows(self) -> Iterator[Row]:
        """Yield rows of which some have a fault."""
        for key, events in self.events.items():
            right = self.row(key, len(events))
            match self.chosen.choice(["none"] * 4 + ["value", "stale", "twice", "missing", "extra", "count"]):
                case "value":
                    yield right | self._changed(right)
                case "stale":
                    yield self._older(key)
                case "twice":
                    yield from (right, self._older(key))
                case "missing":
                    pass
                case "extra":
                    yield from (right, right | {"key": f"{key} too much"})
                case "count":
                    yield right | {"event_count": right["event_count"] + 1}
                case _:
                    yield right

    def _older(self, key: str) -> Row:
        """Return a right row of a key, which is not older than the one that was verified."""
        number = len(self.events[key])
        return self.row(key, self.chosen.randrange(self.verified.get(key, 1), number + 1))

    def _changed(self, row: Row) -> Row:
        field = self.chosen.choice([one.name for one in self.model.state])
        match row[field]:
            case bool() as value:
                return {field: not value}
            case Decimal() | int() as value:
                return {field: value + 1}
            case str() as value:
                return {field: f"{value}x"}
        return {field: Decimal("1.00")}

    def store(self, spark: SparkSession, rows: Iterator[Row]) -> None:
        """Replace the rows of the lake."""
        settings, name = self.ledger.settings, self.model.name
        table = LakeTable(spark, table_path(settings.lake_root, name), settings.lake.retention_h, self.model)
        table.ensure()
        ends = source_state(settings.kafka_connection, name).ends
        tag = CommitTag(name, 1, 1, "promotion", complete_up_to=ends)
        table.overwrite(spark.createDataFrame(list(rows), table.columns), tag, 1)

    def check(self, spark: SparkSession, mode: Mode) -> CheckResult:
        """Check the lake with both engines, which must agree."""
        request = CheckRequest(self.model.name, (StoreName.LAKE,), mode, f"{mode}-{self.chosen.random()}")
        return checked_by_both(spark, self.ledger.settings, request)


@pytest.mark.parametrize("seed", [39, *(pytest.param(n, marks=pytest.mark.endurance) for n in range(10))])
def test_both_engines_give_the_same_report(settings: Settings, lake_spark: SparkSession, seed: int) -> None:
    ledger = GeneratedLedger(settings.changed(quality_sample_keys=KEYS // 2), f"generated-{seed}", seed)
    ledger.append(EVENTS)
    ledger.store(lake_spark, ledger.rows())

    right = ledger.check(lake_spark, Mode.FULL)
    assert right.passed, right.verdict
    ledger.verified = {key: len(events) for key, events in ledger.events.items()}
    ledger.append(EVENTS // 10)
    ledger.store(lake_spark, ledger.faulty_rows())
    incremental, faulty = (ledger.check(lake_spark, mode) for mode in (Mode.INCREMENTAL, Mode.FULL))

    assert incremental.request.mode is Mode.INCREMENTAL, incremental.full_check_reason
    assert not faulty.passed
    assert faulty.failing_keys_total > 0
