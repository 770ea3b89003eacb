"""What is written to the log in the run with every input, and what must become of it."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import murmur2

from include.declarations.load import read_model
from include.kafka.events import GenericEvent
from include.kafka.wire_format import header
from include.settings import Settings
from tests.support.every_input.readings import MOST, NAME, SCHEMA, Expected, reading
from tests.support.faults.foreign_writers import decimal, payload
from tests.support.faults.transactions import TransactionalWriter
from tests.support.http.local_http import HTTP
from tests.support.http.record_keys import HARD_KEYS
from tests.support.json_records.payments import GOOD_PAYMENT, REFUSED_PAYMENTS
from tests.support.stream_process import EventSource, make_topics

NOW = datetime.now(UTC).replace(microsecond=0)
AHEAD = timedelta(hours=1)
JSON_TOPIC = "terminal-log"
GOOD_PAYMENTS = 5
# A key whose sum of ticks is out of range.
OVERFLOWS = "overflows"
KEYS = ("plain", *(key for key in HARD_KEYS if key != "plain"))


class Inputs:
    """What is written to the log, and what must become of it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        for topic in (NAME, JSON_TOPIC, "postings", "balance"):
            make_topics(settings, topic)
        self.model = read_model(NAME, settings.declaration_folders)
        (self.schema,) = self.model.event_schemas
        self.source = EventSource(settings, NAME)
        self.payments = EventSource(settings, JSON_TOPIC)
        self.expected = Expected()
        self.refused: Counter[str] = Counter()
        self.number = 0

    def event(self, key: str, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of any type
        """Return the next event."""
        self.number += 1
        return reading(key, self.number, NOW, **others)

    def value(self, event: Mapping[str, Any]) -> bytes:
        """Return the value of an event's record."""
        return self.source.serializer.serialize(GenericEvent(self.schema, event))

    def good(self, key: str, **others: Any) -> None:  # noqa: ANN401 - fields of any type
        """Append an event that is folded."""
        event = self.event(key, **others)
        self.source.append_raw(key.encode(), self.value(event))
        self.expected.add(event)

    def bad(self, reason: str, value: bytes | None, key: bytes | None = b"plain") -> None:
        """Append a record that becomes a dead letter with this reason."""
        self.source.append_raw(key, value)
        self.refused[reason] += 1

    def write_events(self) -> None:
        """Append events that are folded: of every key, and with every kind of number."""
        for key in KEYS * 2:
            self.good(key)
        for key, number in (("nan", math.nan), ("infinite", math.inf), ("below", -math.inf)):
            self.good(key, value=number)
        self.good("ahead", occurredOn=NOW + AHEAD)
        wide = self.event("wide")
        wide_id = self.register(
            SCHEMA | {"fields": [*SCHEMA["fields"], {"name": "wide", "type": decimal(64, 2)}]}
        )
        self.source.append_raw(b"wide", header(wide_id) + payload(self.schema, wide) + b"\x02\x07")
        self.expected.add(wide)
        for ticks in (MOST, MOST, -MOST):
            self.good("writable again", ticks=ticks)
        for _ in range(2):
            self.good(OVERFLOWS, ticks=MOST)
        self.source.flush()

    def register(self, schema: Mapping[str, Any]) -> int:
        """Register a schema of another producer, and return its id."""
        url = f"{self.settings.registry.url}/subjects/{NAME}-of-others/versions"
        answer = HTTP.post(url, json={"schema": json.dumps(schema)})
        return int(answer.raise_for_status().json()["id"])

    def write_refused(self) -> None:
        """Append records that become dead letters, each between events that are folded."""
        good = self.value(self.event("plain"))
        schema_id = int.from_bytes(good[1:5], "big")
        unusable_id = self.register(_changed_schema("exact", decimal(64, 2)))
        late = payload(self.schema, self.event("plain", occurredOn=300_000_000_000_000))
        cases: tuple[tuple[str, bytes | None, bytes | None], ...] = (
            ("null_key", good, None),
            ("null_value", None, b"plain"),
            ("wrong_magic", b"junk", b"plain"),
            ("unknown_schema_id", header(999_999) + good[5:], b"plain"),
            ("incompatible_schema", header(unusable_id) + good[5:], b"plain"),
            ("undecodable_payload", header(schema_id) + b"\xff", b"plain"),
            ("invalid_key", good, b"another"),
            ("time_out_of_range", header(schema_id) + late, b"plain"),
            ("failed_expression", self.value(self.event("plain", divisor=0)), b"plain"),
        )
        for reason, value, key in cases:
            self.bad(reason, value, key)
            self.good("plain")
        self.source.flush()

    def write_transactions(self) -> None:
        """Commit, misplace and abort events; what is aborted leaves no trace but its markers at the end of the log."""
        writer = TransactionalWriter(self.settings, NAME)
        event = self.event("committed")
        writer.commit([(b"committed", self.value(event))])
        self.expected.add(event)
        partitions = self.settings.topics.partitions
        elsewhere = (murmur2(b"plain", partitions) + 1) % partitions
        writer.commit([(b"plain", self.value(self.event("plain")))], elsewhere)
        self.refused["wrong_partition"] += 1
        for partition in range(partitions):
            writer.abort([(b"aborted", self.value(self.event("aborted")))], partition)

    def write_json(self) -> None:
        """Append payments in JSON: those that a strict reader refuses, between good ones."""
        for _ in range(GOOD_PAYMENTS):
            self.payments.append_raw(b"terminal", GOOD_PAYMENT)
        for text, _ in REFUSED_PAYMENTS:
            self.payments.append_raw(b"terminal", text)
        self.payments.append_raw(b"terminal", GOOD_PAYMENT)
        self.payments.flush()


def _changed_schema(name: str, kind: object) -> dict[str, Any]:
    """Return the event schema with another type for a field."""
    fields = [one | {"type": kind} if one["name"] == name else one for one in SCHEMA["fields"]]
    return SCHEMA | {"fields": fields}
