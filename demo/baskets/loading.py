"""Appends the baskets to the log as events, each once, also where an earlier load was interrupted."""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from demo.baskets.dataset import Basket
from demo.baskets.ledger import Ledger, read_ledger
from include.errors import FoldlakeError, KafkaUnavailableError
from include.kafka.events import EventSerializer, event_key
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, ensure_topics
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings

FLUSH_TIMEOUT_S = 60.0
# Delivery reports are taken in this often; the producer's own queue holds 100,000 records.
POLL_EVERY = 500


class LoadRunningError(FoldlakeError):
    """Another load is at work on the same home."""


@dataclass(frozen=True)
class LoadResult:
    """How many events were appended, how many were there already, and what the log held before."""

    appended: int
    present: int
    ledger: Ledger


def load(
    settings: Settings,
    topic: str,
    baskets: Sequence[Basket],
    on_acknowledged: Callable[[int], None] = lambda _: None,
) -> LoadResult:
    """Append the events of those baskets that the log does not hold yet, and wait until all are acknowledged.

    What is there is read from the log itself: an event's id comes from its basket, so a load that was interrupted goes
    on, and a second load appends nothing. Events of one household keep their order.

    Args:
        settings: where broker and registry are.
        topic: the source topic; made where it is missing.
        baskets: what to load, in order.
        on_acknowledged: told how many are in the log by now, of those asked for.

    Raises:
        LoadRunningError: another load is at work.
        KafkaUnavailableError: the broker did not acknowledge an event.
    """
    with _only_one(settings):
        admin = admin_client(settings.kafka.bootstrap_servers, log_level=0)
        topics = replace(READ_MODEL, source_topic=topic).source_topics(settings.topics)
        ensure_topics(admin, topics, settings.topics.replication_factor)
        ledger = read_ledger(settings, topic)
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
                f"{len(baskets) - deliveries.count} events were not acknowledged within {FLUSH_TIMEOUT_S:.0f} s: "
                "is the broker up? Load again: it goes on where this one stopped."
            )
        return LoadResult(appended=len(events), present=already, ledger=ledger)


def event_producer(bootstrap_servers: str) -> Producer:
    """Return a producer that neither loses nor repeats an event, and puts a key where the Java client would."""
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
    """Counts what the broker has acknowledged, and keeps the first failure."""

    def __init__(self, already: int, on_acknowledged: Callable[[int], None]) -> None:
        self.count = already
        self._on_acknowledged = on_acknowledged
        self._failure: KafkaError | None = None

    def report(self, error: KafkaError | None, _message: Message) -> None:
        """Take in one delivery report."""
        if error is not None:
            self._failure = self._failure or error
        else:
            self.count += 1
            if self.count % POLL_EVERY == 0:
                self._on_acknowledged(self.count)

    def check(self) -> None:
        """Raise KafkaUnavailableError when an event could not be delivered; say how far it is otherwise."""
        if self._failure is not None:
            raise KafkaUnavailableError(
                f"The broker did not take an event ({self._failure}): load again once it is up."
            )
        self._on_acknowledged(self.count)


def _produce(producer: Producer, topic: str, key: bytes, value: bytes, deliveries: _Deliveries) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=deliveries.report)
        except BufferError:
            # The queue is full: wait for the broker to take some.
            producer.poll(0.5)
            deliveries.check()
        except KafkaException as error:
            raise KafkaUnavailableError(f"An event could not be appended to {topic}: {error}") from error
        else:
            return


@contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    """Two loads at once would both find the same events missing."""
    path = settings.home / "run" / "load.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LoadRunningError(
                "Another load is running on this home: wait until it has finished."
            ) from error
        yield
