"""The declaration of an emission: one record for each event of a read model, with the state of its key after the event."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from include.declarations.event_types.known_columns import KnownColumns
from include.declarations.kinds.model_output import ModelOutput
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.declarations.rules.expression import Expression, Fields
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError
from include.settings import TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import Column

# Fold revision -> the fields of the outputs of versions that are built with it.
FieldsOfRevision: TypeAlias = Callable[[int], Mapping[str, "str | Column"]]


@dataclass(frozen=True)
class Emission(ModelOutput):
    """An emission: one output for each event, with the state of its key after it.

    name: lower case, digits and dashes; part of its checkpoints' paths and of the header `route` of every record that it writes.
    read_model: name of the read model whose events and state it reads.
    output_topic: the topic that its consumers read, which only this emission writes. The live version of the read model emits to it;
        any other version emits to `<output_topic>.v<number>`.
    output_type: name of the event type that it writes; `foldlake.key` of its schema names the field that is the key.
    fields: each field of the output, as strings of SQL, or a function that returns strings or columns, given the fold revision of the version
        that emits. They use the event's columns, as the read model's fold does, and `state.<field>`: the state after the event.
    where: the condition, in SQL or a function that returns a column, that an event and the state after it must satisfy; None: every event.
    topic: how the output topic is created, where it differs from the settings.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    """

    kind: ClassVar[str] = "emission"
    when: ClassVar[str] = "emissions are always in real time"

    name: str
    read_model: str
    output_topic: str
    output_type: str
    fields: Mapping[str, str] | FieldsOfRevision
    where: Expression | None = None
    topic: TopicOptions = field(default_factory=TopicOptions)
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)

    def fields_of(self, revision: int) -> Fields:
        """Return the fields of the outputs of a version that is built with a fold revision."""
        return self.fields if isinstance(self.fields, Mapping) else partial(self.fields, revision)

    def output_partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the output topic."""
        return self.topic.partitions or settings.partitions

    def version_topic(self, number: int) -> str:
        """Return the topic to which a version emits while it is not live."""
        return f"{self.output_topic}.v{number}"

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError if items leave the read model, or an expression in SQL is not valid or uses a column that it lacks."""
        if model.items_leave:
            raise ReadModelError(
                f"{self.title} reads {model.name}, whose items end: its state is forgotten, and events could be counted from the "
                "beginning again. Read another read model of the same topic."
            )
        state = [field.name for field in (*model.state, *POSITION_FIELDS)]
        known = KnownColumns.of_events(model.event_schemas).and_struct("state", state)
        if self.where is not None:
            known.require(f"`where` of {self}", self.where)
        if isinstance(self.fields, Mapping):
            known.require_fields(self.title, self.fields, self.output_schema.fields)
