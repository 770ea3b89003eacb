"""Items that end or expire: both engines find those that are still stored, and those that are missing too early."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer, murmur2
from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.kafka.events import EventSerializer, GenericEvent
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topic_state import source_state
from include.kafka.topics import changelog_topic
from include.lake.tables import table_path
from include.lake.tags import CommitTag
from include.position import Position
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.replay.check.readings import Reading
from include.replay.check.run import run_check
from include.replay.check.stores.changelog import ChangelogStore
from include.replay.key_expectations import COMPLETE, KEY_COUNT, NO_ENDED_KEY, NO_MISSING_KEY
from include.settings import Settings
from spark_jobs.lake.lake_table import LakeTable
from tests.support.lake.both_engines import checked_by_both
from tests.support.lake.checked_ledger import named
from tests.support.lake.folded_log import make_first_version

SCHEMA = """{"type": "record", "name": "ParcelMoved", "namespace": "test", "foldlake.key": "number",
"foldlake.lifetime": {"created": "sentOn", "hours": 4}, "fields": [
{"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}},
{"name": "sentOn", "type": {"type": "long", "logicalType": "timestamp-millis"}},
{"name": "number", "type": "string"}, {"name": "status", "type": "string"}, {"name": "km", "type": "long"}]}"""
MODULE = """
from datetime import timedelta
from foldlake import TIMESTAMP_MILLIS, Expiry, ReadModel, StateField
DECLARATIONS = [ReadModel(
    name={name!r}, source_topic={name!r}, event_types=("ParcelMoved",), key="number",
    state=(StateField("status", "string"), StateField("km", "long"), StateField("sent_on", TIMESTAMP_MILLIS)),
    folds={{1: {{"status": "max_by(status, offset)", "km": "sum(km)", "sent_on": "max(sentOn)"}}}},
    ended="status = 'DELIVERED'",
    expires=Expiry(time="sentOn", field="sent_on", after=timedelta(hours=6)),
)]
"""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PARCELS, HOURS = 90, 40
# The newest parcel was sent then. Up to three hours before, no parcel has expired in any store; 12 hours before, it has in every one.
NEWEST = BEGIN + timedelta(hours=HOURS)
Row = dict[str, Any]


@dataclass
class Parcels:
    """Parcels on a log, and the right rows of the lake after each of their events.

    rows: key -> its row after each event that is folded. ended: key -> the number of its events up to the one that ends it.
    """

    settings: Settings
    name: str
    seed: int
    rows: dict[str, list[Row]] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the read model, and append the events of each parcel."""
        folder = self.settings.home / self.name
        folder.mkdir()
        (folder / "ParcelMoved.avsc").write_text(SCHEMA)
        (folder / "parcels.py").write_text(MODULE.format(name=self.name))
        self.settings = self.settings.changed(
            read_models_dir=folder, quality_wait_s=1.0, quality_sample_keys=PARCELS // 3
        )
        self.model: ReadModel = read_model(self.name, (folder,))
        make_first_version(self.settings, self.name)
        registry = SchemaRegistry(self.settings.registry.connection)
        (self._schema,) = self.model.event_schemas
        self._events = EventSerializer(registry, self.name)
        self._changelog = changelog_topic(self.name, 1)
        self._states = EventSerializer(registry, self._changelog)
        kafka = self.settings.kafka_connection
        self._producer = Producer({**kafka.client_settings, "partitioner": "murmur2_random"})
        self._next: dict[int, int] = {}
        chosen = random.Random(self.seed)
        for number in range(PARCELS + 1):
            sent = BEGIN + timedelta(hours=HOURS) * number / PARCELS
            # Those of the last hour are on their way.
            end = chosen.randrange(1, 5) if number < PARCELS - 3 and chosen.random() < 0.6 else 0
            for step in range(1, chosen.randrange(1, 6)):
                status = "DELIVERED" if step == end else chosen.choice(["SENT", "MOVED"])
                # Some are written after the lifetime, or before the parcel was sent: they are no events.
                delay = chosen.choice([0.0, 0.5, 1.0, 2.0, 3.9, 4.1, 9.0, -0.9, -1.1])
                self.add(
                    f"parcel {number}/é", sent, status, chosen.randrange(100), sent + timedelta(hours=delay)
                )
            if number == PARCELS:
                self.add(f"parcel {number}/é", sent, "SENT", 1, sent)
        self.flush()

    def add(self, key: str, sent: datetime, status: str, km: int, written: datetime) -> None:
        """Append an event."""
        values = {"occurredOn": written, "sentOn": sent, "number": key, "status": status, "km": km}
        value = self._events.serialize(GenericEvent(self._schema, values))
        time_ms = round(written.timestamp() * 1000)
        self._producer.produce(self.name, key=key.encode(), value=value, timestamp=time_ms)
        partition = murmur2(key.encode(), self.settings.topics.partitions)
        offset = self._next.get(partition, 0)
        self._next[partition] = offset + 1
        if not timedelta(hours=-1) <= written - sent <= timedelta(hours=4):
            return
        rows = self.rows.setdefault(key, [])
        before: Row = rows[-1] if rows else {"km": 0, "event_count": 0, "occurred_on": written}
        rows.append(
            {
                "key": key,
                "status": status,
                "km": before["km"] + km,
                "sent_on": sent,
                "event_count": before["event_count"] + 1,
                "source_partition": partition,
                "source_offset": offset,
                "occurred_on": max(before["occurred_on"], written),
            }
        )
        if status == "DELIVERED":
            self.ended.setdefault(key, len(rows))

    def flush(self) -> None:
        """Wait until the broker has the records."""
        assert self._producer.flush(60) == 0

    def stays(self, key: str, within_h: float) -> bool:
        """Return whether a parcel has not ended, and was sent within some hours before the newest one."""
        return key not in self.ended and self.rows[key][-1]["sent_on"] >= NEWEST - timedelta(hours=within_h)

    def right_rows(self) -> Iterator[Row]:
        """Yield the rows of all parcels that must be there, and of some that may."""
        chosen = random.Random(self.seed)
        for key, rows in self.rows.items():
            if self.stays(key, 3.0) or (self.stays(key, 11.0) and chosen.random() < 0.5):
                yield rows[-1]

    def store(self, spark: SparkSession, rows: Iterable[Row]) -> None:
        """Replace the rows of the lake."""
        table = LakeTable(
            spark, table_path(self.settings.lake_root, self.name), self.settings.lake.retention_h, self.model
        )
        table.ensure()
        ends = source_state(self.settings.kafka_connection, self.name).ends
        tag = CommitTag(self.name, 1, 1, "promotion", complete_up_to=ends)
        table.overwrite(spark.createDataFrame(list(rows), table.columns), tag, 1)

    def write_changelog(self, rows: Iterable[Row]) -> None:
        """Append rows to the changelog as state records."""
        for row in rows:
            state = {name: value for name, value in row.items() if name != "key"}
            value = self._states.serialize(GenericEvent(self.model.state_schema, state))
            self._producer.produce(self._changelog, key=row["key"].encode(), value=value)
        self.flush()

    def remove(self, key: str) -> None:
        """Append the removal of a parcel after all of its events to the changelog."""
        row = self.rows[key][-1]
        position = Position(row["source_partition"], row["source_offset"], row["event_count"])
        self._producer.produce(self._changelog, key=key.encode(), headers=position.removal_headers())
        self.flush()

    def check(self, spark: SparkSession, mode: Mode, *stores: StoreName) -> CheckResult:
        """Check stores with both engines."""
        request = CheckRequest(self.name, stores, mode, f"{mode}-{random.random()}")
        return checked_by_both(spark, self.settings, request)


@pytest.fixture(
    scope="module", params=[39, *(pytest.param(n, marks=pytest.mark.endurance) for n in range(5))]
)
def parcels(settings: Settings, request: pytest.FixtureRequest) -> Parcels:
    return Parcels(settings, f"parcels-{request.param}", request.param)


def test_items_that_have_left_are_not_missing(parcels: Parcels, lake_spark: SparkSession) -> None:
    parcels.store(lake_spark, parcels.right_rows())

    full = parcels.check(lake_spark, Mode.FULL, StoreName.LAKE)
    sample = parcels.check(lake_spark, Mode.SAMPLE, StoreName.LAKE)
    incremental = parcels.check(lake_spark, Mode.INCREMENTAL, StoreName.LAKE)

    assert full.passed, (full.verdict, full.failing_keys)
    assert 0 < full.keys < len(parcels.rows) < PARCELS
    assert full.events == sum(map(len, parcels.rows.values()))
    assert sample.passed, (sample.verdict, sample.failing_keys)
    assert KEY_COUNT not in {one.expectation for one in sample.expectations}, "keys leave between two counts"
    assert incremental.full_check_reason == "fold revision 1 has no merge"
    assert not full.verified


def test_items_that_should_have_left_and_those_that_are_missing_are_named(
    parcels: Parcels, lake_spark: SparkSession
) -> None:
    right = {row["key"]: row for row in parcels.right_rows()}
    there = [key for key in parcels.rows if parcels.stays(key, 3.0)]
    long_ended = [key for key, number in parcels.ended.items() if number == len(parcels.rows[key])]
    not_yet = [key for key, number in parcels.ended.items() if number > 1]
    expired = [
        key
        for key, rows in parcels.rows.items()
        if key not in parcels.ended and rows[-1]["sent_on"] < NEWEST - timedelta(hours=13)
    ]
    faulty = {
        there[0]: (None, (NO_MISSING_KEY,)),
        long_ended[0]: (parcels.rows[long_ended[0]][-1], (NO_ENDED_KEY,)),
        expired[0]: (parcels.rows[expired[0]][-1], (NO_ENDED_KEY,)),
    }
    # The record that a parcel had before it ended lacks an event.
    ((before, row),) = [
        (key, parcels.rows[key][parcels.ended[key] - 2]) for key in not_yet if key not in faulty
    ][-1:]
    stored = right | {key: row for key, (row, _) in faulty.items() if row} | {before: row}
    parcels.store(lake_spark, (row for key, row in stored.items() if key != there[0]))

    result = parcels.check(lake_spark, Mode.FULL, StoreName.LAKE)

    found = named(result)
    assert COMPLETE in found.pop(before)
    assert found == {key: expectations for key, (_, expectations) in faulty.items()}


def test_an_item_that_ends_during_the_check_is_not_awaited(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcels = Parcels(settings, "parcels-meanwhile", 1)
    parcels.settings = parcels.settings.changed(quality_wait_s=120.0)
    rows = {row["key"]: row for row in parcels.right_rows()}
    parcels.write_changelog(rows.values())
    key = next(key for key in reversed(rows))
    read = ChangelogStore.read

    def ended_before(store: ChangelogStore) -> Reading:
        parcels.add(key, rows[key]["sent_on"], "DELIVERED", 1, rows[key]["sent_on"])
        parcels.remove(key)
        return read(store)

    monkeypatch.setattr(ChangelogStore, "read", ended_before)

    result = run_check(
        parcels.settings, CheckRequest(parcels.name, (StoreName.CHANGELOG,), Mode.FULL, "meanwhile")
    )

    assert result.passed, (result.verdict, result.failing_keys)
    assert result.keys == len(rows) - 1
    assert result.duration_s < 60
