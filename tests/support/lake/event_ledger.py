"""An event table for one test: the events on its topic, and the rows that the table must contain."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from include.declarations.event_table import EventTable
from include.kafka.events import GenericEvent
from include.kafka.record_schema import schema_file
from include.lake.tables import table_path
from include.lake.tagged_table import TableCommit, TaggedTable
from include.lake.tags import APPEND, AppendTag
from include.settings import Settings
from tests.support.stream_process import EventSource, make_topics
from tests.support.waiting import wait_until

FIRST_DAY = datetime(2017, 1, 1, tzinfo=UTC)
FIELDS: tuple[dict[str, Any], ...] = (
    {"name": "id", "type": "string", "doc": "The sale's id."},
    {
        "name": "occurredOn",
        "type": {"type": "long", "logicalType": "timestamp-millis"},
        "doc": "When it happened.",
    },
    {"name": "store", "type": "string", "doc": "The store's number."},
    {
        "name": "price",
        "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2},
        "doc": "What was paid.",
    },
)
NOTE: dict[str, Any] = {"name": "note", "type": ["null", "string"], "default": None, "doc": "A remark."}


@dataclass
class EventLedger:
    """Sales on a topic, and an event table of them.

    expected: id -> (month, price, note) of the sales that were appended to the topic.
    """

    settings: Settings
    name: str
    expected: dict[str, tuple[str, Decimal, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the topic and the schema's folder."""
        self.folder = self.settings.home / f"events-of-{self.name}"
        self.folder.mkdir()
        self.set_fields(FIELDS)
        self._create_topic()

    @property
    def declared(self) -> EventTable:
        """The event table, with the schema as it is now."""
        return EventTable(self.name, self.name, "Sale", schema_folders=(self.folder,))

    @property
    def path(self) -> str:
        """The folder of the Delta table."""
        return table_path(self.settings.lake_root, self.name)

    def set_fields(self, fields: tuple[dict[str, Any], ...]) -> None:
        """Write the schema with these fields."""
        record = {
            "type": "record",
            "name": "Sale",
            "namespace": "foldlake.test",
            "foldlake.key": "store",
            "fields": fields,
        }
        path: Path = self.folder / "Sale.avsc"
        path.write_text(json.dumps(record))
        self.schema = schema_file(path)

    def sell(self, number: int, count: int, note: str | None = None) -> None:
        """Append sales with the numbers from `number`, one on each day of a quarter."""
        events = []
        for sale in range(number, number + count):
            day, price = FIRST_DAY + timedelta(days=sale % 90), Decimal(sale * 7) / 100
            values = {"id": f"sale-{sale}", "occurredOn": day, "store": str(sale % 11), "price": price}
            if "note" in self.schema.fields:
                values["note"] = note
            events.append(GenericEvent(self.schema, values))
            self.expected[f"sale-{sale}"] = (f"{day:%Y-%m}", price, note)
        self.source.append(events)

    def append_raw(self, key: bytes, value: bytes | None) -> None:
        """Append a record unchanged."""
        self.source.append_raw(key, value)
        self.source.flush()

    def recreate_topic(self) -> None:
        """Delete the topic, and create an empty one of the same name."""
        admin = AdminClient(self.settings.kafka_connection.client_settings)
        for future in admin.delete_topics([self.name]).values():
            future.result(30)
        wait_until(lambda: self.name not in admin.list_topics(timeout=10).topics, f"{self.name} is deleted")
        self._create_topic()
        self.expected = {}

    def rows(self) -> dict[str, tuple[str, Decimal, str | None]]:
        """Return the content of the table in the form of `expected`; fails if a sale has two rows."""
        table = DeltaTable(self.path).to_pyarrow_table().to_pylist()
        found = {row["id"]: (row["occurred_month"], row["price"], row.get("note")) for row in table}
        assert len(found) == len(table)
        return found

    def history(self) -> tuple[TableCommit[AppendTag], ...]:
        """Return the commits of the table, newest first."""
        table = TaggedTable.open(self.path, AppendTag.from_json)
        assert table is not None
        return table.history()

    def append_tags(self) -> list[AppendTag]:
        """Return the tags of the commits that appended, oldest first."""
        found = [commit.tag for commit in reversed(self.history())]
        return [tag for tag in found if tag is not None and tag.operation == APPEND]

    def _create_topic(self) -> None:
        make_topics(self.settings, self.name)
        self.source = EventSource(self.settings, self.name)
