"""Where a new version of a read model starts to count: the rule of a reset, and the offsets that it means.

A reset builds a version and never moves offsets in place, so it can be checked, approved and rolled back.

The rules are those of Kafka's `kafka-consumer-groups --reset-offsets`: to the earliest event, to a time, shifted by a number of events.
"""

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer, KafkaException, TopicPartition

from include.errors import FoldlakeError, KafkaUnavailableError
from include.kafka.log_reading import log_consumer
from include.kafka.topic_state import TopicState, topic_state
from include.position import Offsets
from include.settings import KafkaConnection

EARLIEST = "earliest"
SHIFT_BY = "shift-by"
REQUEST_TIMEOUT_S = 10.0
ALLOWED = (
    f"`{EARLIEST}`, a time such as 2026-11-01T00:00:00Z, or `{SHIFT_BY} <number>`, such as `{SHIFT_BY} -100`"
)


class StartRuleError(FoldlakeError):
    """The text is no rule, or there is no topic to which it could apply."""


@dataclass(frozen=True)
class StartRule:
    """Where to start: at a time, or shifted; with neither, at the first event of the log.

    since: the first event whose record has this timestamp in Kafka, or a later one. shift_by: this number of events after the start of the
        live version, in each partition; negative: before it.
    """

    since: datetime | None = None
    shift_by: int | None = None

    def __str__(self) -> str:
        """Return the text of which `parse` makes the rule."""
        if self.since is not None:
            return self.since.isoformat()
        return EARLIEST if self.shift_by is None else f"{SHIFT_BY} {self.shift_by}"

    @classmethod
    def parse(cls, text: str) -> "StartRule":
        """Read a rule; a time without an offset is in UTC. Raises StartRuleError."""
        words = text.split()
        if words == [EARLIEST]:
            return cls()
        try:
            match words:
                case [word, number] if word == SHIFT_BY:
                    return cls(shift_by=int(number))
                case _:
                    since = datetime.fromisoformat(text.strip())
        except ValueError as error:
            raise StartRuleError(f"start is {text!r}; allowed: {ALLOWED}.") from error
        return cls(since=since if since.tzinfo else since.replace(tzinfo=UTC))

    def shifted(self, log: TopicState, live: Offsets) -> Offsets:
        """Return the start of the live version, shifted in each partition, within what the log has."""
        shift_by = self.shift_by or 0
        before = live.merge(log.starts)
        return Offsets(
            {p: max(log.starts.of(p), min(end, before.of(p) + shift_by)) for p, end in log.ends.items()}
        )


def start_offsets(kafka: KafkaConnection, topic: str, rule: StartRule, live: Offsets) -> Offsets:
    """Return the offset of the first event of each partition that counts by a rule; empty: of the whole log.

    A partition without an event since a time starts at its end. live: where the live version starts.

    Raises StartRuleError if the topic does not exist, KafkaUnavailableError.
    """
    if rule == StartRule():
        return Offsets()
    log = topic_state(kafka, topic)
    if log is None:
        raise StartRuleError(
            f"Topic {topic} does not exist: the stream driver creates it at its first start."
        )
    if rule.since is None:
        return rule.shifted(log, live)
    with closing(log_consumer(kafka)) as consumer:
        return _since(consumer, topic, rule.since, log)


def _since(consumer: Consumer, topic: str, since: datetime, log: TopicState) -> Offsets:
    at_ms = max(0, round(since.timestamp() * 1000))
    try:
        found = consumer.offsets_for_times(
            [TopicPartition(topic, p, at_ms) for p in log.ends], timeout=REQUEST_TIMEOUT_S
        )
    except KafkaException as error:
        raise KafkaUnavailableError(
            f"Kafka did not say where {topic} was at {since} ({error}): check that the broker is up."
        ) from error
    # A negative offset: no record has this timestamp or a later one.
    return Offsets({f.partition: f.offset if f.offset >= 0 else log.ends.of(f.partition) for f in found})
