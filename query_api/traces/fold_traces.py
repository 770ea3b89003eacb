"""The spans between an event and the store: of its fold, and of the commit of its state.

The stream driver handles no trace: its queries are the same whether tracing is on or off (decision 79). A state record says which event was
folded into it last, and the event has `traceparent` in its headers. The owner of a partition reads the end of its source too, and puts them together.
"""

import atexit
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import OFFSET_END, Consumer, KafkaException, Message, TopicPartition
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Tracer, get_current_span, set_span_in_context

from include.kafka.log_reading import log_consumer_settings
from include.observability.request_context import TRACEPARENT
from include.position import Position
from include.settings import KafkaConnection, Settings
from query_api.cluster.node_state import NodeState
from query_api.traces.request_traces import parent_of
from query_api.traces.span_export import tracer_of

# Of events that wait for their states, and of states that were stored before their events were read.
KEPT = 20_000
FETCH_WAIT_MS = 200
POLL_S = 0.1
READ_RECORDS = 1_000
RETRY_S = 1.0
QUEUED_KB = 16_384
NS_PER_MS = 1_000_000

Version = tuple[str, int]
"""Read model and number."""
EventAt = tuple[str, int, int]
"""Topic, partition and offset."""


class Stored(NamedTuple):
    """A state record of a version: its time in Kafka, and that of its commit in the store, in ns of Unix time."""

    version: Version
    written_ns: int
    committed_ns: int


@dataclass
class TracedEvent:
    """An event of a trace, its time in Kafka, and the versions whose spans have been made."""

    parent: Context
    written_ns: int
    done: set[Version] = field(default_factory=set)


class FoldTraces:
    """Makes the spans of one node. Thread-safe.

    state: the node's state as published, with the partitions that it owns.
    """

    def __init__(
        self,
        kafka: KafkaConnection,
        tracer: Tracer,
        state: Callable[[], NodeState | None],
    ) -> None:
        self._kafka = kafka
        self._tracer = tracer
        self._state = state
        self._consumer: Consumer | None = None
        self._assigned: frozenset[tuple[str, int]] = frozenset()
        self._events: OrderedDict[EventAt, TracedEvent] = OrderedDict()
        self._early: OrderedDict[EventAt, list[Stored]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of_node(cls, settings: Settings, state: Callable[[], NodeState | None]) -> "FoldTraces":
        """Return those of the materializer that runs in this process."""
        tracer, export = tracer_of(settings, "materializer", lambda _: None)
        atexit.register(export.shutdown)
        return cls(settings.kafka_connection, tracer, state)

    def run_once(self) -> None:
        """Read what has been appended to the source partitions that this node owns. An error of Kafka only delays it."""
        try:
            if self._consumer is None:
                settings = log_consumer_settings(self._kafka, FETCH_WAIT_MS)
                own = {"enable.partition.eof": False, "auto.offset.reset": "latest"}
                self._consumer = Consumer(settings | own | {"queued.max.messages.kbytes": QUEUED_KB})
            self._assign(self._consumer)
            if not self._assigned:
                time.sleep(POLL_S)
                return
            for message in self._consumer.consume(READ_RECORDS, POLL_S):
                self._read(message)
        except KafkaException:
            self._consumer, self._assigned = None, frozenset()
            time.sleep(RETRY_S)

    def stored(self, version: Version, records: Iterable[tuple[Position, int]]) -> None:
        """Note that state records of a version are committed now: their positions, and their times in Kafka in ms."""
        state, now_ns = self._state(), time.time_ns()
        model = None if state is None else state.models.get(version[0])
        if model is None or version[1] not in model.versions:
            return
        topic = model.versions[version[1]].source_topic
        with self._lock:
            for position, written_ms in records:
                if position.partition not in model.owned:
                    continue
                at = (topic, position.partition, position.offset)
                stored = Stored(version, written_ms * NS_PER_MS, now_ns)
                event = self._events.get(at)
                if event is not None:
                    self._trace(at, event, stored)
                else:
                    self._early.setdefault(at, []).append(stored)
            while len(self._early) > KEPT:
                self._early.popitem(last=False)

    def _assign(self, consumer: Consumer) -> None:
        """Read the source partitions that this node owns, the new ones from their end."""
        state = self._state()
        models = () if state is None else state.models.values()
        wanted = frozenset(
            (version.source_topic, partition)
            for model in models
            for version in model.versions.values()
            for partition in model.owned
            if version.source_topic and partition in version.source_ends
        )
        if lost := self._assigned - wanted:
            consumer.incremental_unassign([TopicPartition(*one) for one in lost])
        if new := wanted - self._assigned:
            consumer.incremental_assign([TopicPartition(*one, OFFSET_END) for one in new])
        self._assigned = wanted

    def _read(self, message: Message) -> None:
        headers, topic, partition = message.headers(), message.topic(), message.partition()
        offset = message.offset()
        if message.error() is not None or not headers or topic is None or partition is None or offset is None:
            return
        value = dict(headers).get(TRACEPARENT)
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if text:
            self.appended((topic, partition, offset), text, message.timestamp()[1])

    def appended(self, at: EventAt, traceparent: str, written_ms: int) -> None:
        """Note an event of a trace, and its time in Kafka; does nothing if its `traceparent` is not valid, or says that it is not traced."""
        parent = parent_of({TRACEPARENT: traceparent})
        if not get_current_span(parent).get_span_context().trace_flags.sampled:
            return
        event = TracedEvent(parent, written_ms * NS_PER_MS)
        with self._lock:
            self._events[at] = event
            if len(self._events) > KEPT:
                self._events.popitem(last=False)
            for stored in self._early.pop(at, ()):
                self._trace(at, event, stored)

    def _trace(self, at: EventAt, event: TracedEvent, stored: Stored) -> None:
        """Make the spans of an event and a version, once: the stream driver may write a state again."""
        if stored.version in event.done:
            return
        event.done.add(stored.version)
        (model, number), (topic, partition, offset) = stored.version, at
        attributes: dict[str, str | int] = {
            "foldlake.read_model": model,
            "foldlake.version": number,
            "messaging.system": "kafka",
            "messaging.destination.name": topic,
            "messaging.destination.partition.id": str(partition),
            "messaging.kafka.offset": offset,
        }
        # The clocks of the producer, the stream driver and the node may differ.
        folded_ns = max(stored.written_ns, event.written_ns)
        fold = self._tracer.start_span(
            f"fold {model}", event.parent, SpanKind.CONSUMER, attributes, start_time=event.written_ns
        )
        fold.end(folded_ns)
        store = self._tracer.start_span(
            f"store {model}", set_span_in_context(fold), attributes=attributes, start_time=folded_ns
        )
        store.end(max(stored.committed_ns, folded_ns))
