"""A read model for one test: the events on its log, and its correct records, stored unchanged or with a planted fault."""

import io
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

import fastavro
from confluent_kafka import Producer, murmur2
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from include.declarations.event_table import AppendedTable
from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.declarations.topic_tables import load_lake_catalog
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import changelog, changelog_topic, ensure_topics
from include.kafka.wire_format import header
from include.lake.tables import staging_path, table_path
from include.lake.tags import CommitTag
from include.position import Offsets
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.read_models.balance.events import FundsAdded
from include.replay.table_proof import compare_with_log
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, Version, first_version
from spark_jobs.event_tables import append_new
from spark_jobs.folding.replay import source_ends
from spark_jobs.lake.lake_table import LakeTable
from tests.support.changelog_writer import OCCURRED_ON
from tests.support.lake.both_engines import checked_by_both
from tests.support.stream_process import EventSource, make_topics

MODULE = """
from dataclasses import replace
from include.read_models.balance import model
DECLARATIONS = [replace(model.READ_MODEL, name={name!r}, source_topic={name!r}, key={key})]
"""
# Key expressions for a read model's module.
CUSTOMER, ONE_FOR_ALL = '"customerId"', "\"'all'\""


@dataclass(frozen=True)
class Record:
    """A state record of a customer."""

    key: str
    amount: Decimal
    event_count: int
    source_partition: int
    source_offset: int

    def plus(self, cents: int = 0, events: int = 0, offset: int = 0) -> "Record":
        """Return the record with a larger amount, more events, or a later position."""
        return replace(
            self,
            amount=self.amount + Decimal(cents) / 100,
            event_count=self.event_count + events,
            source_offset=self.source_offset + offset,
        )


@dataclass
class CheckedLedger:
    """The events of some customers, and the correct records.

    key: the read model's key expression. module: of its declaration, a format of name and key. history: key -> its correct record after each of its events.
    """

    settings: Settings
    name: str
    key: str = CUSTOMER
    module: str = MODULE
    history: dict[str, list[Record]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the read model: its module, topics and first version."""
        folder = self.settings.home / f"models-of-{self.name}"
        folder.mkdir()
        (folder / f"{self.name.replace('-', '_')}.py").write_text(
            self.module.format(name=self.name, key=self.key)
        )
        self.settings = self.settings.changed(read_models_dir=folder, quality_wait_s=2.0)
        self.model: ReadModel = read_model(self.name, (folder,))
        make_topics(self.settings, self.name)
        self.source = EventSource(self.settings, self.name)
        versions = VersionRegistry(self.settings.kafka_connection)
        versions.ensure_topic()
        versions.compare_and_set(first_version(self.name, 1), 0)
        self.topic = changelog_topic(self.name, 1)
        admin = AdminClient(self.settings.kafka_connection.client_settings)
        ensure_topics(admin, [changelog(self.topic, self.settings.topics.partitions)], 1)
        self._next: dict[int, int] = {}

    def append(self, customers: int, events_each: int) -> None:
        """Append events of 1.00, 2.00, ... for each customer, round-robin over the customers."""
        for number in range(events_each):
            for customer in range(customers):
                self.add(f"customer {customer}/é", Decimal(number + 1))
        self.source.flush()

    def add(self, key: str, amount: Decimal) -> None:
        """Append one event."""
        event = FundsAdded(customerId=key, amount=amount.quantize(Decimal("0.01")), occurredOn=OCCURRED_ON)
        self.source.append_raw(key.encode(), self.source.serializer.serialize(event))
        partition = murmur2(key.encode(), self.settings.topics.partitions)
        offset = self._next.get(partition, 0)
        self._next[partition] = offset + 1
        records = self.history.setdefault(key, [])
        before = records[-1] if records else Record(key, Decimal("0.00"), 0, partition, -1)
        records.append(Record(key, before.amount + event.amount, before.event_count + 1, partition, offset))

    @property
    def records(self) -> dict[str, Record]:
        """The current correct record of each key."""
        return {key: records[-1] for key, records in self.history.items()}

    def promote_version_2(self) -> None:
        """Make version 2 live in the registry, and change nothing else."""
        versions = VersionRegistry(self.settings.kafka_connection)
        record = versions.read()[self.name]
        (old,) = record.versions
        new = Version(2, Stage.LIVE, 1, changelog_topic(self.name, 2), "test", "")
        both = (replace(old, stage=Stage.PREVIOUS), new)
        versions.compare_and_set(replace(record, versions=both), record.revision)
        versions.close()

    def write_changelog(self, records: Iterable[Record]) -> None:
        """Append state records to the changelog."""
        schema = self.model.state_schema
        schema_id = SchemaRegistry(self.settings.registry.connection).register(self.topic, schema)
        producer = Producer(
            {**self.settings.kafka_connection.client_settings, "partitioner": "murmur2_random"}
        )
        parsed = fastavro.parse_schema(schema.parsed())
        for record in records:
            buffer = io.BytesIO()
            buffer.write(header(schema_id))
            fastavro.schemaless_writer(buffer, parsed, {**self.fields(record), "occurred_on": OCCURRED_ON})
            producer.produce(self.topic, key=record.key.encode(), value=buffer.getvalue())
        assert producer.flush(60) == 0

    @staticmethod
    def fields(record: Record) -> dict[str, object]:
        """Return a record's fields except its key and time."""
        return {
            "amount": record.amount,
            "event_count": record.event_count,
            "source_partition": record.source_partition,
            "source_offset": record.source_offset,
        }

    def write_lake(
        self,
        spark: SparkSession,
        records: Iterable[Record],
        store: StoreName = StoreName.LAKE,
        version: int = 1,
        complete_up_to: Offsets | None = None,
    ) -> None:
        """Replace the rows of the lake's or the staging table; `complete_up_to` defaults to the end of the source."""
        path = table_path(self.settings.lake_root, self.name)
        if store is StoreName.STAGING:
            path = staging_path(self.settings.lake_root, self.name, version)
        table = LakeTable(spark, path, self.settings.lake.retention_h, self.model)
        table.ensure()
        ends = source_ends(self.settings.kafka_connection, self.name)
        tag = CommitTag(
            self.name,
            version,
            1,
            "promotion",
            complete_up_to=ends if complete_up_to is None else complete_up_to,
        )
        rows = [{"key": r.key, **self.fields(r), "occurred_on": OCCURRED_ON} for r in records]
        table.overwrite(spark.createDataFrame(rows, table.columns), tag, 1)

    def check(
        self, spark: SparkSession, *stores: StoreName, mode: Mode = Mode.FULL, run_id: str = "test"
    ) -> CheckResult:
        """Check these stores with both engines."""
        return checked_by_both(spark, self.settings, CheckRequest(self.name, stores, mode, run_id))


class TableLedger(CheckedLedger):
    """A ledger whose topic has an event table."""

    @property
    def table(self) -> str:
        """The event table's name."""
        return f"events/{self.name}"

    @property
    def table_path(self) -> str:
        """The event table's path."""
        return table_path(self.settings.lake_root, self.table)

    @property
    def declared(self) -> AppendedTable:
        """The event table."""
        return load_lake_catalog(self.settings).event_tables[self.table]

    def append_to_table(self, spark: SparkSession) -> None:
        """Append the new events to the table, and prove it."""
        assert append_new(spark, self.settings, self.declared) is not None
        assert compare_with_log(self.settings, self.declared).is_exact


def failed(result: CheckResult) -> dict[str, int]:
    """Return expectation -> number of failures, for the failed expectations."""
    return {e.expectation: e.failed for e in result.expectations if not e.passed}


def named(result: CheckResult) -> dict[str, tuple[str, ...]]:
    """Return failing key -> the expectations that it fails."""
    return {key.key: key.expectations for key in result.failing_keys}
