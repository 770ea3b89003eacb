"""Links what writes topics: each has a name and a topic of its own, no event circulates, and the read model that one reads exists."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from include.declarations.kinds.flow import Flow
from include.declarations.kinds.model_output import ModelOutput
from include.declarations.loading.declared import Declared
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError


@dataclass(frozen=True)
class Writer:
    """A declaration that writes topics: its output, and of a later version also the declared one.

    shares_topics: whether other writers that share topics may write to them, too.
    """

    title: str
    name: str
    source_topic: str
    topics: tuple[str, ...]
    shares_topics: bool = False

    @classmethod
    def of_flow(cls, flow: Flow) -> Self:
        """Return a flow as a writer."""
        topics = (flow.output_topic, flow.declared_topic)
        return cls(flow.title, flow.versioned_name, flow.source_topic, topics, flow.shares_topics)

    @classmethod
    def of_output(cls, one: ModelOutput, models: Mapping[str, ReadModel]) -> Self:
        """Return an output of a read model as a writer."""
        return cls(one.title, one.name, models[one.read_model].source_topic, (one.output_topic,))


def link_outputs(
    declared: Declared, models: Mapping[str, ReadModel], folders: tuple[Path, ...]
) -> list[ModelOutput]:
    """Return the outputs of read models, without those whose read model may be in a module that is left out.

    Raises ReadModelError when one reads a read model that does not exist, or that it does not match.
    """
    found = []
    for one in declared.of(ModelOutput):
        if one.read_model in models:
            linked = one.loaded(folders)
            linked.validate_against(models[one.read_model])
            found.append(linked)
        elif not declared.failures:
            raise ReadModelError(
                f"{one.title} reads {one.read_model!r}, which is no read model. Known read models: {', '.join(sorted(models))}."
            )
    return found


def require_compatible(writers: Sequence[Writer]) -> None:
    """Raise ReadModelError if two writers have one name or one topic, or what one writes leads back to what it reads."""
    names: dict[str, Writer] = {}
    owners: dict[str, Writer] = {}
    for writer in writers:
        if names.setdefault(writer.name, writer) is not writer:
            raise ReadModelError(f"Two declarations are named {writer.name!r}: rename one.")
        for topic in writer.topics:
            owner = owners.setdefault(topic, writer)
            if owner is not writer and not (owner.shares_topics and writer.shares_topics):
                raise ReadModelError(
                    f"{writer.title} and {owner.name} write to {topic}: give each a topic of its own."
                )
    edges = [(writer.source_topic, topic) for writer in writers for topic in writer.topics]
    for writer in writers:
        if writer.source_topic in _reached(writer.topics, edges):
            raise ReadModelError(
                f"{writer.title} reads {writer.source_topic}, to which its own output leads back: its events would circulate for ever. "
                "Write to another topic."
            )


def _reached(topics: Iterable[str], edges: Sequence[tuple[str, str]]) -> set[str]:
    """Return the topics to which events on these topics come. edges: source and output topic of all that write topics."""
    reached, new = set(topics), set(topics)
    while new:
        new = {output for source, output in edges if source in new} - reached
        reached |= new
    return reached
