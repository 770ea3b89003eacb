"""How a source topic is created, where a read model overrides the settings."""

from collections.abc import Iterable
from dataclasses import dataclass

from include.errors import ReadModelError
from include.kafka.topics import Topic, source_topics
from include.settings import TopicSettings

NUMBERS = ("partitions", "replication_factor", "retention_ms")


@dataclass(frozen=True)
class TopicOptions:
    """Options of a source topic, of its dead-letter topic and of its read models' changelogs.

    partitions: None for FOLDLAKE_PARTITIONS.
    replication_factor: None for FOLDLAKE_REPLICATION_FACTOR.
    retention_ms: how long events are kept; None for ever. With a limit, a rebuild folds only the events that still exist:
        it loses what older events contributed.
    compacted: Kafka keeps only the newest record of each key. Only routes read such a topic.

    The options take effect when the topic is created: an existing topic is not altered.
    """

    partitions: int | None = None
    replication_factor: int | None = None
    retention_ms: int | None = None
    compacted: bool = False

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        for name in NUMBERS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ReadModelError(f"{name} of a topic is {value}: give 1 or more, or None.")


@dataclass(frozen=True)
class EventsTopic:
    """The topic to which the events of a re-keyed read model are produced, and its merged options."""

    name: str
    options: TopicOptions


def merge_options(source_topic: str, options: Iterable[TopicOptions]) -> TopicOptions:
    """Return the options of a topic that several declarations share; one of them is enough to set an option.

    Raises ReadModelError when two set different values.
    """
    merged: dict[str, int] = {}
    is_compacted = False
    for one in options:
        is_compacted = is_compacted or one.compacted
        for name in NUMBERS:
            value = getattr(one, name)
            if value is None:
                continue
            if merged.setdefault(name, value) != value:
                raise ReadModelError(
                    f"Read models set {name} of the topic {source_topic} to {merged[name]} and {value}: "
                    "use the same value, or set it in one of them only."
                )
    return TopicOptions(**merged, compacted=is_compacted)


def topics_with_options(name: str, options: TopicOptions, settings: TopicSettings) -> list[Topic]:
    """Return a topic of events with these options, and its dead-letter topic."""
    return source_topics(
        name,
        options.partitions or settings.partitions,
        options.replication_factor,
        options.retention_ms,
        settings.flush_messages,
        compacted=options.compacted,
    )
