"""The route that gives a read model's events its key: derived from a read model that declares `rekey`.

The topic belongs to this read model alone: one that read models shared could not be changed or removed with one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from include.declarations.event_table import EventTable
from include.declarations.kinds.flow import ROUTE, Flow
from include.declarations.read_model import ReadModel
from include.declarations.topic_options import EventsTopic
from include.errors import ReadModelError


def route_name(read_model: str) -> str:
    """Return the name of a read model's derived route."""
    return f"{read_model}-by-key"


def rekeyed_topic(read_model: str, events_topic: str) -> str:
    """Return the topic that has a read model's events under the read model's key."""
    return f"{events_topic}.by-{read_model}"


def rekeyed(model: ReadModel, events: EventsTopic) -> ReadModel:
    """Return a read model that declares `rekey` as one that folds what its derived route writes.

    The topic that the route writes has the partitions and the replication of the events' topic. It is kept for ever, unless the read
    model itself declares another retention: its order is what the states rest on.
    """
    options = replace(events.options, retention_ms=model.topic.retention_ms)
    topic = rekeyed_topic(model.name, events.name)
    return replace(model, source_topic=topic, topic=options, rekeyed_from=events)


def key_routes(models: Mapping[str, ReadModel], folders: tuple[Path, ...]) -> dict[str, Flow]:
    """Return the derived route of each read model that folds re-keyed events, by name."""
    return {
        route_name(model.name): Flow(
            kind=ROUTE,
            name=route_name(model.name),
            source_topic=model.rekeyed_from.name,
            event_types=model.event_types,
            output_topic=model.source_topic,
            key=model.key,
            topic=model.topic,
            latency=model.latency,
            of_read_model=model.name,
            schema_folders=folders,
            source=model.rekeyed_from.options,
        )
        for model in models.values()
        if model.rekeyed_from is not None
    }


def require_own_topics(
    models: Iterable[ReadModel],
    tables: Iterable[EventTable],
    declared: Mapping[str, Flow],
    derived: Mapping[str, Flow],
) -> None:
    """Raise ReadModelError if a declaration has the name of a derived route, or reads or writes a derived route's topic."""
    topics = {route.output_topic: route for route in derived.values()}
    for name in derived.keys() & declared.keys():
        raise ReadModelError(
            f"{declared[name].title} has the name of the route that is derived from read model {derived[name].of_read_model}: rename one of them."
        )
    users = [
        (f"Read model {model.name}", model.source_topic) for model in models if model.rekeyed_from is None
    ]
    users += [(f"Event table {table.name}", table.source_topic) for table in tables]
    for flow in declared.values():
        users += [(flow.title, topic) for topic in (flow.source_topic, flow.output_topic)]
    for user, topic in users:
        if topic in topics:
            raise ReadModelError(
                f"{user} uses {topic}, which belongs to read model {topics[topic].of_read_model} alone: read {topics[topic].source_topic}, "
                "with `rekey=True` if it is a read model that needs another key, or write to another topic."
            )
