"""Links all declarations into the catalog: options of topics, derived routes, versions of routes, and conflicts between declarations."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from include.declarations.catalog import Catalog
from include.declarations.event_table import EventTable
from include.declarations.event_types.event_schemas import require_distinct_types
from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.route import Route
from include.declarations.loading.declared import Declared
from include.declarations.loading.endpoints import link_apis, link_endpoints
from include.declarations.loading.flows import (
    compiled_flows,
    require_no_circle,
    require_no_model_of_kind,
    with_source_options,
)
from include.declarations.loading.outputs import link_emissions, link_periodic_emissions
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import key_routes, rekeyed, require_own_topics
from include.declarations.topic_options import EventsTopic, TopicOptions, merge_options
from include.errors import ReadModelError


def link(declared: Declared, folders: tuple[Path, ...]) -> Catalog:
    """Return the catalog of all declarations; raises ReadModelError if two of them exclude each other.

    folders: those of additional declarations, which are also searched for event schemas.
    """
    declared_routes = _routes(declared, folders)
    compiled = compiled_flows(declared, declared_routes, folders)
    written = declared_routes | compiled
    models = _read_models(declared, written.values(), folders)
    require_no_model_of_kind(declared, models)
    derived = key_routes(models, folders)
    tables = _event_tables(declared, models, folders)
    require_own_topics(models.values(), tables.values(), written, derived)
    writers = [*declared_routes.values(), *derived.values(), *compiled.values()]
    flows = tuple(with_source_options(flow, models.values(), writers) for flow in writers)
    _require_one_format([*flows, *models.values(), *tables.values()])
    catalog = Catalog(
        models,
        flows,
        event_tables=tables,
        kinds=declared.kinds,
        failures=declared.failures,
    )
    for topic in catalog.source_topics:
        require_distinct_types(f"topic {topic}", catalog.event_types(topic))
    _require_kept_events(flows, [*models.values(), *tables.values()])
    emissions = link_emissions(declared, models, flows, folders)
    periodic = link_periodic_emissions(declared, models, flows, emissions, folders)
    edges = [(one.source_topic, one.output_topic) for one in flows]
    edges += [(models[one.read_model].source_topic, one.output_topic) for one in emissions.values()]
    edges += [(models[one.read_model].source_topic, one.output_topic) for one in periodic.values()]
    require_no_circle(compiled.values(), edges)
    apis = link_apis(declared, models, folders)
    return replace(
        catalog,
        emissions=emissions,
        periodic=periodic,
        apis=apis,
        endpoints=link_endpoints(declared, models, apis),
    )


def _read_models(
    declared: Declared, writers: Collection[Flow], folders: tuple[Path, ...]
) -> dict[str, ReadModel]:
    """Return the read models by name; raises ReadModelError when two have one name, or declare one topic differently."""
    models: dict[str, ReadModel] = {}
    for model in declared.of(ReadModel):
        if model.name in models:
            raise ReadModelError(f"Two modules of read models are named {model.name!r}: rename one.")
        models[model.name] = model
    return {name: _linked_model(model, models.values(), writers, folders) for name, model in models.items()}


def _linked_model(
    model: ReadModel, models: Iterable[ReadModel], writers: Collection[Flow], folders: tuple[Path, ...]
) -> ReadModel:
    """Return the read model with the merged options of its topic and the folder of additional schemas."""
    of_models = (other.topic for other in models if other.source_topic == model.source_topic)
    shared = merge_options(model.source_topic, chain(of_models, _output_options(model.source_topic, writers)))
    writer = next((one for one in writers if one.output_topic == model.source_topic), None)
    if model.ended is not None and writer is not None:
        raise ReadModelError(
            f"Read model {model.name} has items that end, but {writer} writes {model.source_topic}, and the times of its records "
            "are not those of the events: read the topic that the producers write."
        )
    if model.rekey:
        return replace(rekeyed(model, EventsTopic(model.source_topic, shared)), schema_folders=folders)
    if shared == model.topic and folders == model.schema_folders:
        return model
    return replace(model, topic=shared, schema_folders=folders)


def _routes(declared: Declared, folders: tuple[Path, ...]) -> dict[str, Flow]:
    """Return every declared route by name.

    The name of a version after the first ends in `.v<version>`.
    Raises ReadModelError when two routes have the same name and version, or a topic would be routed back to itself.
    """
    routes: dict[str, Flow] = {}
    for route in chain.from_iterable(one.flows() for one in declared.of(Route)):
        if route.versioned_name in routes:
            raise ReadModelError(
                f"Two routes are named {route.name!r} and have version {route.version}: rename one, or give the new one version "
                f"{route.version + 1}."
            )
        routes[route.versioned_name] = _with_version_topic(replace(route, schema_folders=folders))
    for route in routes.values():
        _require_no_cycle(route, routes)
    return {name: _with_output_options(route, routes) for name, route in routes.items()}


def _output_options(topic: str, writers: Iterable[Flow]) -> list[TopicOptions]:
    """Return the options that the routes to a topic declare for it and for its versions, which have the same."""
    return [one.topic for one in writers if one.declared_topic == topic]


def _with_version_topic(route: Flow) -> Flow:
    """Return a version after the first as one that writes to its own topic."""
    if route.version == 1:
        return route
    return replace(
        route, output_topic=f"{route.output_topic}.v{route.version}", first_topic=route.output_topic
    )


def _with_output_options(route: Flow, routes: Mapping[str, Flow]) -> Flow:
    options = _output_options(route.declared_topic, routes.values())
    return replace(route, topic=merge_options(route.declared_topic, options))


def _require_no_cycle(route: Flow, routes: Mapping[str, Flow]) -> None:
    reached = {route.output_topic, route.declared_topic}
    new = set(reached)
    while new:
        if route.source_topic in new:
            raise ReadModelError(
                f"Route {route.name} reads {route.source_topic}, to which its own output leads back: its events would circulate "
                "for ever. Write to another topic."
            )
        outputs = (
            topic
            for other in routes.values()
            if other.source_topic in new
            for topic in (other.output_topic, other.declared_topic)
        )
        new = set(outputs) - reached
        reached |= new


def _event_tables(
    declared: Declared, models: Mapping[str, ReadModel], folders: tuple[Path, ...]
) -> dict[str, EventTable]:
    """Return every event table by name; raises ReadModelError when two tables have one name."""
    tables: dict[str, EventTable] = {}
    for table in declared.of(EventTable):
        if table.name in tables or table.name in models:
            raise ReadModelError(
                f"Two read models or event tables are named {table.name!r}, and both would be lake/{table.name}: rename one."
            )
        tables[table.name] = replace(table, schema_folders=folders)
    return tables


def _require_kept_events(routes: Iterable[Flow], readers: Iterable[ReadModel | EventTable]) -> None:
    """Raise ReadModelError if a read model or an event table reads a compacted topic, which loses events that count."""
    compacted = {route.source_topic for route in routes if route.source.compacted}
    compacted |= {
        reader.source_topic for reader in readers if isinstance(reader, ReadModel) and reader.topic.compacted
    }
    for reader in readers:
        if reader.source_topic in compacted:
            raise ReadModelError(
                f"{reader.name} reads {reader.source_topic}, which is compacted: a replay could not find the events that Kafka has removed. "
                "Let a route write them to a topic that is kept, and read that."
            )


def _require_one_format(readers: Sequence[ReadModel | Flow | EventTable]) -> None:
    """Raise ReadModelError if a topic is read in two formats."""
    in_json = [one for one in readers if isinstance(one, Flow) and one.source_format is EventFormat.JSON]
    for route in in_json:
        others = [
            one.name for one in readers if one.source_topic == route.source_topic and one not in in_json
        ]
        if others:
            raise ReadModelError(
                f"{route.title} reads {route.source_topic} as JSON, and {others[0]} reads it as Avro. A topic has one format; read "
                "models and event tables read a route's output instead of a topic in JSON."
            )
