"""The declaration of an emission: one record for each event of a read model, with the state of its key after the event.

A module of `include/read_models/`, or any module of a package there, assigns it to EMISSION.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from include.declarations.loading.modules import declared_values, reads_left_out
from include.declarations.read_model import ReadModel
from include.declarations.route import Route, output_schema
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import Topic, source_topics
from include.settings import TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import Column

NAME_PATTERN = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Emission:
    """An emission as data.

    name: lower case, digits and dashes; part of its checkpoints' paths and of the header `route` of every record that it writes.
    read_model: name of the read model whose events and state it reads.
    output_topic: the topic that its consumers read, which only this emission writes. The live version of the read model emits to it;
        any other version emits to `<output_topic>.v<number>`.
    output_type: name of the event type that it writes; `foldlake.key` of its schema names the field that is the key.
    fields: builds the column of each field of the output, given the fold revision of the version that emits. It uses the event's
        columns, as the read model's fold does, and `state.<field>`: the state after the event.
    where: builds the condition that an event and the state after it must satisfy; None: every event.
    topic: how the output topic is created, where it differs from the settings.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    """

    name: str
    read_model: str
    output_topic: str
    output_type: str
    fields: "Callable[[int], Mapping[str, Column]]"
    where: "Callable[[], Column] | None" = None
    topic: TopicOptions = field(default_factory=TopicOptions)
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        if not NAME_PATTERN.fullmatch(self.name):
            raise ReadModelError(
                f"Emission name {self.name!r} is not valid: use lower-case letters, digits and dashes."
            )

    def output_partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the output topic."""
        return self.topic.partitions or settings.partitions

    def version_topic(self, number: int) -> str:
        """Return the topic to which a version emits while it is not live."""
        return f"{self.output_topic}.v{number}"

    def topic_named(self, name: str, settings: TopicSettings) -> Topic:
        """Return the consumers' topic or a version's, with the given name."""
        partitions, options = self.output_partitions(settings), self.topic
        return source_topics(
            name, partitions, options.replication_factor, options.retention_ms, settings.flush_messages
        )[0]

    @cached_property
    def output_schema(self) -> RecordSchema:
        """The schema of the outputs; raises ReadModelError if it names no key."""
        return output_schema(f"emission {self.name}", self.output_type, self.schema_folders)

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise SchemaError if what it writes has no valid schema, ReadModelError if that has no key."""
        _ = replace(self, schema_folders=folders).output_schema


def load_emissions(
    models: Mapping[str, ReadModel], routes: Mapping[str, Route], folders: tuple[Path, ...] = ()
) -> dict[str, Emission]:
    """Return every declared emission by name: the `EMISSION` of each module in `include/read_models/` and in `folders`.

    Raises ReadModelError when one reads a read model that does not exist, two have one name or one topic, or its output leads back to
    the read model.
    """
    emissions: dict[str, Emission] = {}
    for emission in declared_values("EMISSION", Emission, folders):
        if emission.name in emissions or emission.name in routes:
            raise ReadModelError(f"Two routes or emissions are named {emission.name!r}: rename one.")
        if reads_left_out(emission.read_model, models, folders):
            continue
        emissions[emission.name] = replace(emission, schema_folders=folders)
    for emission in emissions.values():
        _check(emission, emissions, models, routes)
    return emissions


def _check(
    emission: Emission,
    emissions: Mapping[str, Emission],
    models: Mapping[str, ReadModel],
    routes: Mapping[str, Route],
) -> None:
    if emission.read_model not in models:
        raise ReadModelError(
            f"Emission {emission.name} reads {emission.read_model!r}, which is no read model. Known read models: "
            f"{', '.join(sorted(models))}."
        )
    read_model = models[emission.read_model]
    if read_model.items_leave:
        raise ReadModelError(
            f"Emission {emission.name} reads {emission.read_model}, whose items end: its state is forgotten, and events could be "
            "counted from the beginning again. Read another read model of the same topic."
        )
    topics = {name: other.output_topic for name, other in emissions.items() if other is not emission}
    topics |= {name: route.output_topic for name, route in routes.items()}
    others = [name for name, topic in topics.items() if topic == emission.output_topic]
    if others:
        raise ReadModelError(
            f"Emission {emission.name} and {others[0]} write to {emission.output_topic}: give each a topic of its own."
        )
    source = models[emission.read_model].source_topic
    if leads_to(emission.output_topic, source, models, routes, emissions):
        raise ReadModelError(
            f"Emission {emission.name} reads what its own output leads to: its events would circulate for ever. Write to "
            "another topic."
        )


def leads_to(
    topic: str,
    target: str,
    models: Mapping[str, ReadModel],
    routes: Mapping[str, Route],
    emissions: Mapping[str, Emission],
) -> bool:
    """Return whether events on a topic come to another one, through routes and emissions."""
    reached, new = {topic}, {topic}
    while new:
        if target in new:
            return True
        new = {
            *(route.output_topic for route in routes.values() if route.source_topic in new),
            *(
                other.output_topic
                for other in emissions.values()
                if models[other.read_model].source_topic in new
            ),
        } - reached
        reached |= new
    return False
