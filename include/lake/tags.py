"""The tags of commits: each commit of Foldlake names the content of its Delta table, as JSON in Delta's `userMetadata`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from include.position import Offsets
from include.unknown_fields import ignore_unknown_fields

Record = TypeVar("Record")
APPEND = "append"
# Empties the table.
RESTART = "restart"


class Tag:
    """A frozen dataclass that is stored as the tag of a commit. Its fields are values of JSON, Offsets, tuples, mappings and dataclasses of these."""

    def to_json(self) -> str:
        """Return the tag as the JSON text for `userMetadata`."""
        return json.dumps(asdict(self), separators=(",", ":"))  # type: ignore[call-overload] # every subclass is a dataclass

    @classmethod
    def from_json(cls, text: str | None) -> Self | None:
        """Read a commit's `userMetadata`; None when it is not a tag of this class."""
        try:
            return from_fields(cls, json.loads(text or ""))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def from_fields(record_type: type[Record], stored: Mapping[str, Any]) -> Record:
    """Return a dataclass from its fields as `asdict` and JSON have stored them; fields that it does not have are ignored.

    Fields with a default may be absent, as older releases did not write them; offsets may not.

    Raises ValueError, TypeError, KeyError or AttributeError.
    """
    hashable: Any = record_type
    known, types = ignore_unknown_fields(record_type, stored), _field_types(hashable)
    values = {name: _value(types[name], value) for name, value in known.items()}
    for name, kind in types.items():
        if kind is Offsets and name not in values:
            raise KeyError(name)
    return record_type(**values)


@cache
def _field_types(record_type: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    types = get_type_hints(record_type)
    return {one.name: types[one.name] for one in fields(record_type)}


def _value(kind: Any, stored: Any) -> Any:  # noqa: ANN401 - any type of a field
    if kind is Offsets:
        return Offsets.from_json(stored)
    if kind is float:
        return float(stored)
    if is_dataclass(kind):
        return from_fields(kind, stored)  # type: ignore[arg-type] # a class, not an instance
    if get_origin(kind) is tuple:
        return tuple(stored)
    if get_origin(kind) is Mapping:
        key_type, value_type = get_args(kind)
        return {key_type(key): _value(value_type, value) for key, value in stored.items()}
    return stored


@dataclass(frozen=True)
class CommitTag(Tag):
    """The tag of a commit of `lake/<read model>`.

    version, fold_revision: of the read model; the table contains that version as of this commit.
    operation: compaction, promotion, optimize or vacuum.
    changelog_offsets: partition of that version's changelog -> offset of the first record that is not merged into the table.
    complete_up_to: partition of the source -> offset; every event below it that the version folds is in the table.
    promotion_id: identifies the overwrite on which the content is based, and compaction's checkpoint.
    topic_id: Kafka's id of the changelog topic of these offsets: a recreated topic of the same name has another one. Empty
        in tags of releases that did not write it.
    """

    read_model: str
    version: int
    fold_revision: int
    operation: str
    changelog_offsets: Offsets = field(default_factory=Offsets)
    complete_up_to: Offsets = field(default_factory=Offsets)
    promotion_id: str = ""
    topic_id: str = ""

    @property
    def content(self) -> str:
        """The read model and its version, for one line of text."""
        return f"{self.read_model} v{self.version}"


@dataclass(frozen=True)
class AppendTag(Tag):
    """The tag of a commit of `lake/<event table>`: only it records which events the table contains.

    topic_id: Kafka's id of the topic: a recreated topic of the same name has another one.
    start: partition of the topic -> offset of the first record that the topic had when its first events were appended.
    offsets: partition -> offset of the first record that is not in the table yet.
    operation: append, restart, optimize or vacuum.

    event_types: their events are rows; empty in tags of releases that did not write them.
    generation: how often the table was emptied and filled again because an event type was added.

    The records from `start` to `offsets` are counted. rows: those of the table's event types; each is a row. unreadable: those that
    cannot be decoded. other_types: those of other event types. lost: those that the topic deleted before they were read.
    """

    table: str
    source_topic: str
    topic_id: str
    start: Offsets = field(default_factory=Offsets)
    offsets: Offsets = field(default_factory=Offsets)
    operation: str = APPEND
    rows: int = 0
    unreadable: int = 0
    other_types: int = 0
    lost: int = 0
    event_types: tuple[str, ...] = ()
    generation: int = 0

    @property
    def records(self) -> int:
        """The number of offsets between `start` and `offsets`."""
        return self.start.events_until(self.offsets)

    @property
    def complete_up_to(self) -> Offsets:
        """The offsets, under the name that they have in a CommitTag."""
        return self.offsets

    @property
    def content(self) -> str:
        """The event table, for one line of text."""
        return self.table


LakeTag = CommitTag | AppendTag
TagT = TypeVar("TagT", bound=Tag)
LakeTagT = TypeVar("LakeTagT", bound=LakeTag)
# Reads a commit's `userMetadata`; None when it is not such a tag.
TagReader = Callable[[str | None], TagT | None]


def read_lake_tag(text: str | None) -> LakeTag | None:
    """Read the tag of a read model's table or of an event table; None when the text is neither."""
    return CommitTag.from_json(text) or AppendTag.from_json(text)
