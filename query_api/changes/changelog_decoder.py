"""From messages of a changelog to the changes of its keys."""

import logging
import threading
from dataclasses import dataclass, field

from confluent_kafka import Message

from include.declarations.api import Location
from include.errors import RegistryUnavailableError
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import StateRecord, decode_state_record
from include.position import Position
from query_api.changes.key_change import ChangeEvent, KeyHistory, KeyState, Point

REGISTRY_RETRY_S = 1.0

log = logging.getLogger(__name__)


class UnknownSchemaError(ValueError):
    """The schema registry has no schema with the id in a record."""


@dataclass
class ChangelogDecoder:
    """Decodes messages, and drops those that change nothing. One thread uses it.

    location: the fields of the state that contain an item's location, if any. is_stopping: ends the wait for the schema registry.
    """

    registry: SchemaRegistry
    location: Location | None
    is_stopping: threading.Event
    history: KeyHistory = field(default_factory=KeyHistory)

    def change(self, message: Message) -> ChangeEvent | None:
        """Return the change that a message makes; None for an outdated or undecodable one.

        Waits while the schema registry does not answer.
        """
        partition, offset, key = message.partition(), message.offset(), message.key()
        if not key or partition is None or offset is None:
            return None
        try:
            key.decode()
            value = message.value()
            record = None if value is None else self._record(value)
        except ValueError as error:
            log.warning("%s/%s offset %s is skipped: %s", message.topic(), partition, offset, error)
            return None
        before = self.history.state(key)
        if record is None:
            if self.history.is_repeated_removal(key):
                return None
            position = Position.of_removal(message.headers())
            count = None if position is None else position.event_count
            known = before.event_count if before is not None else 0
            after = KeyState(known if count is None else count, is_removed=True, point=None)
            event_count = count
        else:
            event_count = record.event_count
            if self.history.is_outdated_record(key, event_count):
                return None
            after = KeyState(event_count, is_removed=False, point=self._point(record))
        self.history.set(key, after)
        return ChangeEvent(partition, offset, key, record, event_count, before, after)

    def _point(self, record: StateRecord) -> Point | None:
        return None if self.location is None else self.location.of(record.state)

    def _record(self, value: bytes) -> StateRecord | None:
        while True:
            try:
                return decode_state_record(value, self._schema)
            except RegistryUnavailableError as error:
                log.warning("changes wait for the schema registry: %s", error)
                if self.is_stopping.wait(REGISTRY_RETRY_S):
                    raise ValueError("stopped") from error

    def _schema(self, schema_id: int) -> RecordSchema:
        schema = self.registry.usable_schema(schema_id)
        if schema is None:
            raise UnknownSchemaError(f"the schema registry has no schema {schema_id}")
        return schema
