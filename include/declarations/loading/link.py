"""Links all declarations into the catalog: options of topics, derived routes, and conflicts between declarations.

A conflict stops everything. If one of two declarations were left out, the order of folders would decide which.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from include.declarations.catalog import Catalog
from include.declarations.event_table import EventTable
from include.declarations.event_types.event_schemas import require_distinct_types
from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.flow import Flow
from include.declarations.loading.declared import Declared
from include.declarations.loading.endpoints import link_apis, link_endpoints
from include.declarations.loading.flows import (
    declared_flows,
    output_options,
    require_no_model_of_kind,
    with_source_options,
)
from include.declarations.loading.outputs import Writer, link_outputs, require_compatible
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import key_routes, rekeyed, require_own_topics
from include.declarations.topic_options import EventsTopic, merge_options
from include.errors import ReadModelError


def link(declared: Declared, folders: tuple[Path, ...]) -> Catalog:
    """Return the catalog of all declarations; raises ReadModelError if two of them exclude each other.

    folders: those of additional declarations, which are also searched for event schemas.
    """
    written = declared_flows(declared, folders)
    models = _read_models(declared, written.values(), folders)
    require_no_model_of_kind(declared, models)
    derived = key_routes(models, folders)
    tables = _event_tables(declared, models, folders)
    require_own_topics(models.values(), tables.values(), written, derived)
    flows = tuple(written.values()) + tuple(derived.values())
    flows = tuple(with_source_options(flow, models.values(), flows) for flow in flows)
    _require_one_format(flows, [*models.values(), *tables.values()])
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
    outputs = link_outputs(declared, models, folders)
    writers = [Writer.of_flow(flow) for flow in flows]
    require_compatible([*writers, *(Writer.of_output(one, models) for one in outputs)])
    apis = link_apis(declared, models, folders)
    return replace(
        catalog,
        outputs={one.name: one for one in outputs},
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
    shared = merge_options(model.source_topic, chain(of_models, output_options(model.source_topic, writers)))
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


def _require_one_format(flows: Sequence[Flow], others: Sequence[ReadModel | EventTable]) -> None:
    """Raise ReadModelError if a topic is read in two formats."""
    in_json = [flow for flow in flows if flow.source_format is EventFormat.JSON]
    in_avro = [*(flow for flow in flows if flow not in in_json), *others]
    for route in in_json:
        found = [one.name for one in in_avro if one.source_topic == route.source_topic]
        if found:
            raise ReadModelError(
                f"{route.title} reads {route.source_topic} as JSON, and {found[0]} reads it as Avro. A topic has one format; read "
                "models and event tables read a route's output instead of a topic in JSON."
            )
