"""How a source topic is created, where a read model says more than the settings."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from include.errors import ReadModelError


@dataclass(frozen=True)
class TopicOptions:
    """Options of a source topic and of what follows from it: its dead-letter topic and its read models' changelogs.

    partitions: None for FOLDLAKE_PARTITIONS.
    replication_factor: None for FOLDLAKE_REPLICATION_FACTOR.
    retention_ms: how long events are kept; None for ever. With a limit, a rebuild folds only the events that are kept:
        it loses what older events contributed.

    They take effect when the topic is created: an existing topic is left as it is.
    """

    partitions: int | None = None
    replication_factor: int | None = None
    retention_ms: int | None = None

    def __post_init__(self) -> None:  # noqa: D105 - checks what the class says of its fields
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None and value < 1:
                raise ReadModelError(f"{option.name} of a topic is {value}: give 1 or more, or None.")


def merge_options(source_topic: str, options: Iterable[TopicOptions]) -> TopicOptions:
    """Return the options of a topic that several read models share; it is enough that one of them gives an option.

    Raises ReadModelError when two give different values.
    """
    merged: dict[str, int] = {}
    for one in options:
        for option in fields(one):
            value = getattr(one, option.name)
            if value is None:
                continue
            if merged.setdefault(option.name, value) != value:
                raise ReadModelError(
                    f"Read models give the topic {source_topic} {option.name} {merged[option.name]} and {value}: "
                    "give the same, or give it in one of them only."
                )
    return TopicOptions(**merged)
