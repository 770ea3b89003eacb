"""The state of a key as a query node serves it, to compare with the fold of the events up to its position."""

import json
import logging
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from confluent_kafka import murmur2

from include.declarations.read_model import ReadModel
from include.kafka.topic_state import source_state
from include.nodes.field_names import FieldNames, renamed
from include.nodes.node_url import PeerRule
from include.nodes.record_client import OWNER, NodeClient
from include.position import Position
from include.replay.columns import event_struct
from include.replay.json_values import json_object, typed_value
from include.settings import Settings
from include.versions.explanation import Explanation
from include.versions.version_record import Stage, Version

LOG = logging.getLogger(__name__)
# A node that answers later is not compared.
PATIENCE_S = 2.0


@dataclass(frozen=True)
class ServedState:
    """A key's record on a node: its state as JSON, with the types of the state's schema."""

    node: str
    position: Position
    state: str

    def difference(self, found: Explanation) -> str:
        """Return how the record differs from the fold of the events up to its position; empty if it does not, or if it is not known.

        It is not known for a position among events that the explanation does not show.
        """
        after = next((one for one in found.events if one.offset == self.position.offset), None)
        if after is None and (found.hidden_events or not self._is_inside(found)):
            return ""
        served = f"{self.node} serves {self.state} at {self.position}"
        if after is None:
            return f"{served}, where the log has no event of this key."
        at = Position(after.partition, after.offset, after.number)
        if (at, after.state) == (self.position, self.state):
            return ""
        return f"{served}, and the events up to it give {after.state or 'no record'} at {at}."

    def _is_inside(self, found: Explanation) -> bool:
        """Return whether the position is in the part of the log that was read."""
        partition = str(self.position.partition)
        start, end = found.read_from.get(partition), found.read_until.get(partition)
        return start is not None and end is not None and start <= self.position.offset < end


class ServedStateLookup:
    """Looks the record of a key up while the program goes on."""

    def __init__(self, settings: Settings, model: ReadModel, version: Version, key: str) -> None:
        """Start. There is no record to compare unless the version is the live one."""
        self._found: ServedState | None = None
        self._deadline_s = time.monotonic() + PATIENCE_S
        self._thread = threading.Thread(
            target=self._look_up, args=(settings, model, version, key), daemon=True
        )
        if version.stage is Stage.LIVE:
            self._thread.start()

    def result(self) -> ServedState | None:
        """Return the record; None if no node has answered with one in time. Waits until then."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._deadline_s - time.monotonic()))
        return self._found

    def _look_up(self, settings: Settings, model: ReadModel, version: Version, key: str) -> None:
        try:
            self._found = served_state(settings, model, version, key, self._deadline_s)
        except Exception:
            LOG.info("no node's record is compared", exc_info=True)


def served_state(
    settings: Settings, model: ReadModel, version: Version, key: str, deadline_s: float
) -> ServedState | None:
    """Return the record of a key on a node that has it ready; None if there is none.

    deadline_s: when to give up, on the clock of time.monotonic(). Raises ReplicaUnavailableError, KafkaUnavailableError, SettingsError.
    """
    kafka = settings.kafka_connection
    partitions = len(source_state(kafka, version.changelog_topic).ends)
    partition = int(murmur2(key.encode(), partitions))
    peers = PeerRule.of_client(settings)
    client = NodeClient(kafka, peers, model.name, version.number, model.declared_topic)
    with closing(client):
        ready = [replica for replica in client.replicas(0.0).ready if replica.partition == partition]
        if not ready:
            return None
        chosen = min(ready, key=lambda replica: (replica.role != OWNER, replica.name))
        text = client.record(chosen, key, deadline_s)
    return None if text is None else _served(chosen.node, text, model, version.fold_revision)


def _served(node: str, text: str, model: ReadModel, revision: int) -> ServedState:
    record: dict[str, Any] = renamed(json.loads(text, parse_float=Decimal), FieldNames.SNAKE)
    kinds, state = event_struct(model.state_schema_of(revision)), record["state"]
    names = [field.name for field in model.state_fields(revision)]
    fields = ((name, kinds.field(name).type) for name in names)
    written = json_object((name, typed_value(state.get(name), kind), kind) for name, kind in fields)
    return ServedState(node, Position.take_from(record), written)
