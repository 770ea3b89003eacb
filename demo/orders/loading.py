"""Appends the updates of couriers to the log: as fast as possible, or each at its time."""

import time
from collections.abc import Callable, Iterable, Iterator

from demo.appending import append_missing, ensure_source_topic, load_lock
from demo.orders.couriers import MS_PER_S, Update
from include.settings import Settings

TOPIC = "order-location"


def load(
    settings: Settings, updates: Iterable[Update], on_acknowledged: Callable[[int], None] = lambda _: None
) -> int:
    """Append updates, each with the record time at which it was written, wait until all are acknowledged, and return their number.

    Raises:
        LoadRunningError: another load is running.
        KafkaUnavailableError: the broker did not acknowledge an update.
    """
    with load_lock(settings.home):
        ensure_source_topic(settings, TOPIC)
        return append_missing(settings, TOPIC, updates, 0, on_acknowledged, lambda update: update.written_ms)


def in_real_time(updates: Iterable[Update], until_ms: int) -> Iterator[Update]:
    """Yield each update no earlier than it is written, until this time in milliseconds since 1970."""
    for update in updates:
        if update.written_ms >= until_ms:
            return
        time.sleep(max(0.0, update.written_ms / MS_PER_S - time.time()))
        yield update
