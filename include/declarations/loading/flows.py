"""Links flows: each declaration compiles once, and each topic has the options of all that write or read it."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from include.declarations.kinds.flow import Flow
from include.declarations.kinds.kind import FlowDeclaration
from include.declarations.loading.declared import Declared
from include.declarations.read_model import ReadModel
from include.declarations.topic_options import TopicOptions, merge_options
from include.errors import ReadModelError


def declared_flows(declared: Declared, folders: tuple[Path, ...]) -> dict[str, Flow]:
    """Return the flows to which declarations compile, by name; that of a version after the first ends in `.v<version>`.

    Raises ReadModelError when two flows have the same name and version.
    """
    flows: dict[str, Flow] = {}
    for one in declared.of(FlowDeclaration):
        for flow in one.flows():
            if flow.versioned_name in flows:
                raise ReadModelError(
                    f"Two flows are named {flow.name!r} and have version {flow.version}: rename one, or give the new one version "
                    f"{flow.version + 1}."
                )
            linked = replace(flow, schema_folders=folders, declaration=one.name)
            flows[flow.versioned_name] = _with_version_topic(linked)
    return {name: _with_output_options(flow, flows.values()) for name, flow in flows.items()}


def _with_version_topic(flow: Flow) -> Flow:
    """Return a version after the first as one that writes to its own topic."""
    if flow.version == 1:
        return flow
    return replace(flow, output_topic=f"{flow.output_topic}.v{flow.version}", first_topic=flow.output_topic)


def _with_output_options(flow: Flow, flows: Iterable[Flow]) -> Flow:
    topic = flow.declared_topic
    return replace(flow, topic=merge_options(topic, output_options(topic, flows)))


def output_options(topic: str, flows: Iterable[Flow]) -> list[TopicOptions]:
    """Return the options that the flows to a topic declare for it and for its versions, which have the same."""
    return [flow.topic for flow in flows if flow.declared_topic == topic]


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
