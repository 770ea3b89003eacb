"""Appends the events of the tills to the log, each exactly once, also when a load was interrupted."""

from collections.abc import Callable
from dataclasses import dataclass

from demo.appending import append_missing, ensure_source_topic, load_lock
from demo.log_tables import messages
from demo.pos.dataset import Sales, till_events
from include.kafka.wire_format import HEADER_BYTES
from include.settings import Settings

TOPIC = "pos-invoices"
CONTINUES = 0x80


@dataclass(frozen=True)
class LoadResult:
    """The numbers of events that this load appended, and of those that the log already had."""

    appended: int
    present: int


def load(
    settings: Settings, topic: str, sales: Sales, on_acknowledged: Callable[[int], None] = lambda _: None
) -> LoadResult:
    """Append the events of the tills that are missing from the log, and wait until all are acknowledged.

    The log is read first. An event's id is derived from its basket, so a load resumes an interrupted one, and a repeated load appends
    nothing. The events of one store keep their order.

    Args:
        settings: the addresses of the broker and the registry.
        topic: the source topic, created if it does not exist.
        sales: the baskets to load.
        on_acknowledged: called with the number of these events that are in the log so far.

    Raises:
        LoadRunningError: another load is running.
        KafkaUnavailableError: the broker did not acknowledge an event.
    """
    with load_lock(settings.home):
        ensure_source_topic(settings, topic)
        known = _event_ids(settings, topic)
        occurrences = till_events(sales)
        missing = [one for one in occurrences if one.event_id(sales) not in known]
        # An event is made when it is appended: all at once would need gigabytes.
        events = (one.event(sales) for one in missing)
        present = len(occurrences) - len(missing)
        return LoadResult(append_missing(settings, topic, events, present, on_acknowledged), present)


def _event_ids(settings: Settings, topic: str) -> set[str]:
    """Return the ids of all events on a topic."""
    found = (first_string(message.value() or b"") for message in messages(settings, topic))
    return {event_id for event_id in found if event_id}


def first_string(value: bytes) -> str | None:
    """Return the first field of an event, a string, such as its id, without decoding the rest; None for other bytes.

    The format is Confluent's header, then Avro's zigzag length as a variable-length integer, and UTF-8.
    """
    length, shift, at = 0, 0, HEADER_BYTES
    while at < len(value):
        byte = value[at]
        length |= (byte & ~CONTINUES) << shift
        at, shift = at + 1, shift + 7
        if byte < CONTINUES:
            break
    text = value[at : at + (length >> 1)]
    return text.decode(errors="replace") if text and len(text) == length >> 1 else None
