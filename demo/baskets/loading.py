"""Appends the baskets to the log as events, each exactly once, also when a load was interrupted."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from demo.baskets.dataset import Basket
from demo.baskets.ledger import Ledger, read_ledger
from include.errors import FoldlakeError, KafkaUnavailableError
from include.files import file_lock
from include.kafka.events import EventSerializer, event_key
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, ensure_topics
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings

FLUSH_TIMEOUT_S = 60.0
# Delivery reports are handled after this many events; the producer's own queue holds 100,000 records.
POLL_EVERY = 500


class LoadRunningError(FoldlakeError):
    """Another load into the same home is running."""


@dataclass(frozen=True)
class LoadResult:
    """The numbers of events that this load appended and that the log already had, and the log's content before the load."""

    appended: int
    present: int
    ledger: Ledger


def load(
    settings: Settings,
    topic: str,
    baskets: Sequence[Basket],
    on_acknowledged: Callable[[int], None] = lambda _: None,
) -> LoadResult:
    """Append the events of the baskets that are missing from the log, and wait until all are acknowledged.

    The log is read first. An event's id is derived from its basket, so a load resumes an interrupted one, and a
    repeated load appends nothing. The events of one household keep their order.

    Args:
        settings: the addresses of the broker and the registry.
        topic: the source topic, created if it does not exist.
        baskets: the baskets to load, in order.
        on_acknowledged: called with the number of these baskets that are in the log so far.

    Raises:
        LoadRunningError: another load is running.
        KafkaUnavailableError: the broker did not acknowledge an event.
    """
    with _load_lock(settings.home):
        admin = admin_client(settings.kafka.bootstrap_servers, log_level=0)
        topics = replace(READ_MODEL, source_topic=topic).source_topics(settings.topics)
        ensure_topics(admin, topics, settings.topics.replication_factor)
        ledger = read_ledger(settings.kafka.bootstrap_servers, settings.registry.url, topic)
        events = [
            event for event in (basket.event() for basket in baskets) if event.id not in ledger.basket_ids
        ]
        already = len(baskets) - len(events)
        on_acknowledged(already)
        serializer = EventSerializer(SchemaRegistry(settings.registry.url), topic)
        deliveries = _Deliveries(already, on_acknowledged)
        producer = event_producer(settings.kafka.bootstrap_servers)
        for number, event in enumerate(events):
            _produce(producer, topic, event_key(event), serializer.serialize(event), deliveries)
            if number % POLL_EVERY == 0:
                producer.poll(0)
                deliveries.check()
        producer.flush(FLUSH_TIMEOUT_S)
        deliveries.check()
        if deliveries.count != len(baskets):
            raise KafkaUnavailableError(
                f"{len(baskets) - deliveries.count} events were not acknowledged within {FLUSH_TIMEOUT_S:.0f} s. "
                "Hint: check that the broker is up, then load again to continue."
            )
        return LoadResult(appended=len(events), present=already, ledger=ledger)


def event_producer(bootstrap_servers: str) -> Producer:
    """Return an idempotent producer with the Java client's partitioner."""
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
            "log_level": 0,
        }
    )


class _Deliveries:
    """Counts acknowledged events, and keeps the first failure."""

    def __init__(self, already: int, on_acknowledged: Callable[[int], None]) -> None:
        self.count = already
        self._on_acknowledged = on_acknowledged
        self._failure: KafkaError | None = None

    def report(self, error: KafkaError | None, _message: Message) -> None:
        """Handle one delivery report."""
        if error is not None:
            self._failure = self._failure or error
        else:
            self.count += 1
            if self.count % POLL_EVERY == 0:
                self._on_acknowledged(self.count)

    def check(self) -> None:
        """Report the progress; raises KafkaUnavailableError when an event could not be delivered."""
        if self._failure is not None:
            raise KafkaUnavailableError(
                f"The broker rejected an event ({self._failure}). Hint: load again once the broker is up."
            )
        self._on_acknowledged(self.count)


def _produce(producer: Producer, topic: str, key: bytes, value: bytes, deliveries: _Deliveries) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=deliveries.report)
        except BufferError:
            # The producer's queue is full: wait for delivery reports.
            producer.poll(0.5)
            deliveries.check()
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot append an event to {topic}: {error}") from error
        else:
            return


def _load_lock(home: Path) -> AbstractContextManager[None]:
    """Return the lock that prevents concurrent loads, which would append the same missing events twice."""
    return file_lock(
        home / "run" / "load.lock",
        error=lambda locked: LoadRunningError(
            f"Process {locked.holder or 'unknown'} is loading events from {home}. Hint: wait until it has "
            "finished, then load again."
        ),
    )
