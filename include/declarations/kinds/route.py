"""The declaration of a route: a stateless query from topic to topic, as data."""

from dataclasses import dataclass, field, fields
from pathlib import Path

from include.declarations.kinds.flow import ROUTE, Flow
from include.declarations.kinds.kind import FlowDeclaration


@dataclass(frozen=True)
class Route(Flow, FlowDeclaration):
    """A route: a stateless query that writes events of one topic to another.

    name: lower case, digits and dashes; part of its checkpoint's path and of the header `route` of every record that it writes.
    source_topic: the topic that it reads.
    source_format: the format of the events on it; that of all routes that read the topic.
    event_types: names of the event types that it reads; other records on the topic are ignored.
    output_topic: the topic that it writes. Several routes may write to one topic, which then has the events of all of them.
    output_type: name of the event type that it writes; `foldlake.key` of its schema names the field that is the new key. None: the
        route writes each event as it is, under its own schema.
    fields: each field of the output, from an event's columns, as those of a read model's fold; with `output_type`. The expressions are those of
        ReadModel.
    key: the key (a string) under which an event is written as it is; None: its own key. Only without `output_type`.
    where: the condition that an event must satisfy; None: every event.
    each: an array; each element gives one output, in order, and is the column `item` in `fields`. None: one output
        for each event.
    topic: how the output topic is created, where it differs from the settings.
    latency: in real time, or in batches of about a second, which need no task slots of their own.
    version: 1, or higher for a new version of the route with this name, which writes to a topic of its own, `<output_topic>.v<version>`.
    source: how the source topic is created, where it differs from the settings, if no read model reads it and no route writes it.
    """

    kind: str = field(default=ROUTE, init=False)  # type: ignore[misc]  # no parameter of a route
    state: None = field(default=None, init=False, repr=False)
    # Those that are set on loading are of the flow to which it compiles.
    of_read_model: str = field(default="", init=False, repr=False)
    schema_folders: tuple[Path, ...] = field(default=(), init=False, repr=False, compare=False)
    first_topic: str = field(default="", init=False, repr=False, compare=False)
    declaration: str = field(default="", init=False, repr=False, compare=False)

    def flows(self) -> tuple[Flow, ...]:
        """Return its flow."""
        return (Flow(**{one.name: getattr(self, one.name) for one in fields(self)}),)
