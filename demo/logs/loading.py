"""Appends log lines to the topic `logs`, each once, also when a load was interrupted."""

from collections import Counter
from collections.abc import Callable

from confluent_kafka import KafkaError, Message

from demo.appending import FLUSH_TIMEOUT_S, POLL_EVERY, ensure_source_topic, event_producer, load_lock
from demo.log_tables import messages
from demo.logs.lines import log_lines
from include.errors import KafkaUnavailableError
from include.settings import Settings

TOPIC = "logs"


def load_lines(settings: Settings, count: int, on_appended: Callable[[int], None] = lambda _: None) -> int:
    """Append those of the first `count` lines that the topic lacks, wait until all are acknowledged, and return their number.

    Lines have no id. Those of one thread stand on the topic in their order, so that its first records are the thread's first lines.

    on_appended: called with the number of lines that have been handed over so far. Raises KafkaUnavailableError, LoadRunningError.
    """
    with load_lock(settings.home):
        ensure_source_topic(settings, TOPIC)
        present = Counter(bytes_of(message.key()) for message in messages(settings, TOPIC))
        producer = event_producer(settings.kafka_connection)
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        appended = 0
        for number, line in enumerate(log_lines(count), start=1):
            key = line.thread.encode()
            if present[key] > 0:
                present[key] -= 1
                continue
            while True:
                try:
                    producer.produce(
                        TOPIC, line.text.encode(), key, on_delivery=on_delivery, timestamp=line.written_ms
                    )
                except BufferError:
                    # The producer's queue is full: wait for delivery reports.
                    producer.poll(0.5)
                else:
                    break
            appended += 1
            if number % POLL_EVERY == 0:
                producer.poll(0)
                on_appended(number)
        left = producer.flush(FLUSH_TIMEOUT_S)
        if failures or left:
            raise KafkaUnavailableError(
                f"{left or len(failures)} lines were not acknowledged. Hint: check that the broker is up, then load again to continue."
            )
        on_appended(count)
        return appended


def bytes_of(key: str | bytes | None) -> bytes:
    """Return a record's key in bytes."""
    return key.encode() if isinstance(key, str) else key or b""
