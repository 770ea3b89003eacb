"""Appends the baskets to the log as events, each exactly once, also when a load was interrupted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from demo.appending import append_missing, load_lock
from demo.baskets.dataset import Basket
from demo.baskets.ledger import Ledger, read_ledger
from include.kafka.topics import admin_client, ensure_topics
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings


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
    with load_lock(settings.home):
        admin = admin_client(settings.kafka.bootstrap_servers, log_level=0)
        topics = replace(READ_MODEL, source_topic=topic).source_topics(settings.topics)
        ensure_topics(admin, topics, settings.topics.replication_factor)
        ledger = read_ledger(settings.kafka.bootstrap_servers, settings.registry.url, topic)
        events = [
            event for event in (basket.event() for basket in baskets) if event.id not in ledger.basket_ids
        ]
        present = len(baskets) - len(events)
        appended = append_missing(settings, topic, events, present, on_acknowledged)
        return LoadResult(appended=appended, present=present, ledger=ledger)
