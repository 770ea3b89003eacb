"""Links flows: each declaration of a kind compiles once, and no flow, route or emission leads events back to where they come from."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from include.declarations.kinds.flow import Flow
from include.declarations.kinds.route import Route
from include.declarations.loading.declared import Declared
from include.declarations.read_model import ReadModel
from include.declarations.topic_options import merge_options
from include.errors import ReadModelError


def compiled_flows(
    declared: Declared, routes: Mapping[str, Flow], folders: tuple[Path, ...]
) -> dict[str, Flow]:
    """Return the flows to which declarations compile, by name, without the routes.

    Raises ReadModelError when two flows or routes have one name or write one topic.
    """
    flows: dict[str, Flow] = {}
    topics = {route.declared_topic: route.name for route in routes.values()}
    topics |= {route.output_topic: route.name for route in routes.values()}
    for one in declared.flow_declarations:
        for flow in () if isinstance(one, Route) else one.flows():
            if flow.name in {*flows, *routes}:
                raise ReadModelError(f"Two routes or flows are named {flow.name!r}: rename one.")
            other = topics.setdefault(flow.output_topic, flow.name)
            if other != flow.name:
                raise ReadModelError(
                    f"{flow.title} and {other} write to {flow.output_topic}: give each a topic of its own."
                )
            flows[flow.name] = replace(flow, schema_folders=folders, declaration=one.name)
    return flows


def require_no_model_of_kind(declared: Declared, models: Collection[str]) -> None:
    """Raise ReadModelError if a read model has the word for a kind as its name, as their checkpoints have one folder."""
    for word in declared.kinds:
        if word in models:
            raise ReadModelError(
                f"A read model is named {word!r}, and so is a kind of declaration: rename one of them."
            )


def with_source_options(flow: Flow, models: Iterable[ReadModel], flows: Collection[Flow]) -> Flow:
    """Return a flow with the options of its source: those of the read models that read it, or of the flows that write or read it.

    A read model whose events are re-keyed declares the options of the topic to which they are produced.
    """
    models = tuple(models)
    topic = flow.source_topic
    readers = (model.topic for model in models if model.source_topic == topic)
    rekeyed = (model.rekeyed_from for model in models if model.rekeyed_from is not None)
    before = (events.options for events in rekeyed if events.name == topic)
    written = (other.topic for other in flows if other.output_topic == topic)
    others = (other.source for other in flows if other.source_topic == topic)
    known = next(chain(readers, before, written), None)
    return replace(flow, source=known or merge_options(topic, others))


def require_no_circle(flows: Iterable[Flow], edges: Collection[tuple[str, str]]) -> None:
    """Raise ReadModelError if a flow's output leads back to its source. edges: source and output topic of all that write topics."""
    for flow in flows:
        if leads_to(flow.output_topic, flow.source_topic, edges):
            raise ReadModelError(
                f"{flow.title} reads {flow.source_topic}, to which its own output leads back: its events would circulate for ever. "
                "Write to another topic."
            )


def leads_to(topic: str, target: str, edges: Collection[tuple[str, str]]) -> bool:
    """Return whether events on a topic come to another one. edges: source and output topic of all that write topics."""
    reached, new = {topic}, {topic}
    while new:
        if target in new:
            return True
        new = {output for source, output in edges if source in new} - reached
        reached |= new
    return False
