"""The base class of declarations that write a topic from a read model's states: emissions and periodic emissions are its kinds."""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from include.declarations.kinds.flow import output_schema
from include.declarations.read_model import ReadModel, require_name
from include.declarations.topic_options import TopicOptions, topics_with_options
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import Topic
from include.settings import TopicSettings


class ModelOutput(ABC):
    """A declaration that reads a read model, and alone writes its output topic. Its subclasses, frozen dataclasses, are the kinds.

    kind: the word for it. when: when it writes, as a clause, for operators who would run it in batches. The fields are described by each kind.
    """

    kind: ClassVar[str]
    when: ClassVar[str]
    name: str
    read_model: str
    output_topic: str
    output_type: str
    topic: TopicOptions
    schema_folders: tuple[Path, ...]

    def __post_init__(self) -> None:  # noqa: D105 - validates the name
        require_name(self.kind.capitalize(), self.name)

    def __str__(self) -> str:
        """Return its kind and name."""
        return f"{self.kind} {self.name}"

    @property
    def title(self) -> str:
        """Its kind and name at the beginning of a sentence."""
        return f"{self.kind.capitalize()} {self.name}"

    def topic_named(self, name: str, settings: TopicSettings) -> Topic:
        """Return the output topic, or that of a version, with the given name."""
        return topics_with_options(name, replace(self.topic, compacted=False), settings)[0]

    @cached_property
    def output_schema(self) -> RecordSchema:
        """The schema of the outputs; raises ReadModelError if it names no key."""
        return output_schema(str(self), self.output_type, self.schema_folders)

    def loaded(self, folders: tuple[Path, ...]) -> Self:
        """Return it with the folders that are also searched for event schemas."""
        return replace(self, schema_folders=folders)  # type: ignore[type-var]  # each kind is a dataclass

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise SchemaError if what it writes has no valid schema, ReadModelError if that has no key."""
        _ = self.loaded(folders).output_schema

    @abstractmethod
    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError if it does not match its read model."""
