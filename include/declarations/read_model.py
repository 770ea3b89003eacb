"""The declaration of a read model: a key, and the fold of its events into a state."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from include.declarations.event_types.event_schemas import event_schema, require_distinct_types
from include.declarations.event_types.known_columns import KnownColumns
from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.expiry import Expiry, require_forgettable, shared_lifetime
from include.declarations.latency import Latency, require_emit_interval, require_latency
from include.declarations.rules.derived_merge import derived_merge
from include.declarations.rules.expression import Expression, Fields
from include.declarations.topic_options import EventsTopic, TopicOptions, topics_with_options
from include.errors import ReadModelError
from include.kafka.record_schema import ItemLifetime, RecordSchema, require_distinct_names
from include.kafka.topics import Topic, changelog
from include.position import POSITION_COLUMNS, POSITION_RECORD_FIELDS, Offsets
from include.settings import Placement, TopicSettings

NAME_PATTERN = re.compile(r"[a-z][a-z0-9-]*")
# The key in the tables of states.
KEY_COLUMN = "key"


@dataclass(frozen=True)
class StateField:
    """One field of a read model's state: an Avro type, its meaning, and the first fold revision that produces it."""

    name: str
    avro_type: str | dict[str, Any] | list[Any]
    doc: str = ""
    since: int = 1


def require_name(kind: str, name: str) -> None:
    """Raise ReadModelError unless the name of a declaration is valid. kind: the word for its kind, such as `Read model`."""
    if not NAME_PATTERN.fullmatch(name):
        raise ReadModelError(f"{kind} name {name!r} is not valid: use lower-case letters, digits and dashes.")


def decimal_type(precision: int, scale: int) -> dict[str, Any]:
    """Return Avro's decimal over bytes: `precision` digits in all, `scale` of them after the point."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


TIMESTAMP_MILLIS: dict[str, Any] = {"type": "long", "logicalType": "timestamp-millis"}

POSITION_FIELDS = tuple(
    StateField(field.name, field.avro_type, field.doc) for field in POSITION_RECORD_FIELDS
)


@dataclass(frozen=True)
class ReadModel:
    """A read model: a key, and the fold of the events of each key into one state.

    name: lower case, digits and dashes; names its topics and API paths.
    source_topic: the topic of its events.
    event_types: names of the event schemas that it folds, in `schemas/` of any read model; other record types on the topic
        are ignored.
    key: the read model's key (a string), from an event's columns.
    state: the fields that the fold produces.
    folds: revision -> fold: one aggregate for each state field that its revision has. Keep an old revision until every version built with it
        is retired. A new version uses the highest revision.
    key_doc: what the key is, for readers of the tables.
    merges: revision -> merge, for incremental checks (docs/quality.md), where it cannot be derived from a fold in SQL. A merge is one aggregate
        for each state field over several records of one key, each the fold of a part of its events: the result is the fold of all of them.
        Its columns are those of a state record; a fold of no value may have left a field null. Without a merge, a revision is checked as a
        whole.
    ended: the condition, on an event's columns, under which an event ends its item: the item then leaves the changelog, the nodes'
        stores and the lake, for good. Its event types must declare the same `foldlake.lifetime`, after which Spark forgets its state,
        and producers must write the source topic. None: keys stay.
    expires: when its items leave the stores by themselves; None: they stay. Its source topic must have no events that are much later than
        others, because Spark forgets the states (spark_jobs/folding/lifetimes.py).
    topic: how the source topic is created, where it differs from the settings.
    latency: of its folds: in real time, or in batches, which need no task slots of their own. Its emissions are always in real time.
    emit_every: at most one record for each key and interval, in batches of this interval; None: as often as `latency` says.
    placement: where its records are served from; FOLDLAKE_PLACEMENTS overrides it.
    rekey: the key is not the key of the events: a derived route writes them under it to a topic of its own, which the read model folds.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    rekeyed_from: the topic of the events, if `source_topic` is what a derived route writes; set on loading.
    starts: the offsets of the first events that a version of it folds; empty for the whole log; set by `reading`.
    first_topic: the declared source topic, of which `source_topic` is then a later version; empty otherwise; set by `reading`.

    An expression is a string of Spark SQL, or a function that returns a column (rules/expression.py); a fold or merge is a mapping of strings,
    or a function that returns a mapping of either. An event's columns, for key and fold: `event_type` (the record's name), every field that all event types share,
    and `<EventType>.<field>` for each type's own (null where the event is of another type).
    """

    name: str
    source_topic: str
    event_types: tuple[str, ...]
    key: Expression
    state: tuple[StateField, ...]
    folds: Mapping[int, Fields]
    key_doc: str = "Key of the read model."
    merges: Mapping[int, Fields] = field(default_factory=dict)
    ended: Expression | None = None
    expires: Expiry | None = None
    topic: TopicOptions = field(default_factory=TopicOptions)
    rekey: bool = False
    latency: Latency = Latency.MILLISECONDS
    emit_every: timedelta | None = None
    placement: Placement = Placement.PARTITIONED
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)
    rekeyed_from: EventsTopic | None = field(default=None, repr=False, compare=False)
    first_topic: str = field(default="", repr=False, compare=False)
    starts: Offsets = field(default_factory=Offsets, repr=False, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        require_name("Read model", self.name)
        require_latency(f"read model {self.name}", self.latency)
        require_emit_interval(self.name, self.emit_every)
        if self.placement not in set(Placement):
            message = (
                f"placement of read model {self.name} is {self.placement!r}: allowed: {', '.join(Placement)}."
            )
            raise ReadModelError(message)
        if not self.folds or min(self.folds) < 1:
            message = f"Read model {self.name} has no fold: give `folds={{1: fold}}`."
            raise ReadModelError(message)
        unknown = sorted(self.merges.keys() - self.folds.keys())
        if unknown:
            message = (
                f"Read model {self.name} has a merge of revision {unknown[0]}, but no such fold: remove it."
            )
            raise ReadModelError(message)
        if self.ended or self.expires:
            fields = {field.name for field in self.state}
            kept_by = {"merges": bool(self.merges), "rekey": self.rekey}
            require_forgettable(self.name, self.expires, fields, kept_by)
        require_distinct_types(f"read model {self.name}", self.event_types)
        require_own_names(self.name, (field.name for field in self.state))

    @property
    def newest_fold_revision(self) -> int:
        """The revision of the fold that a new version is built with."""
        return max(self.folds)

    @property
    def is_in_batches(self) -> bool:
        """Whether its folds run in batches, whatever their interval, rather than in real time."""
        return self.latency is Latency.SECOND or self.emit_every is not None

    @property
    def events_topic(self) -> str:
        """The topic to which events are produced: the source topic, unless that is what a derived route writes."""
        return self.source_topic if self.rekeyed_from is None else self.rekeyed_from.name

    @property
    def declared_topic(self) -> str:
        """The source topic as declared, whichever version of it is read. The nodes' group assigns its partitions."""
        return self.first_topic or self.source_topic

    def reading(self, source_topic: str, starts: Offsets | None = None) -> Self:
        """Return the read model as a version of it reads it.

        source_topic: the version of its source topic; empty: the declared topic. starts: as in ReadModel; None: the whole log.
        """
        return replace(
            self,
            source_topic=source_topic or self.declared_topic,
            first_topic=self.declared_topic,
            starts=starts or Offsets(),
        )

    def partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the source topic and of each changelog."""
        return self.topic.partitions or settings.partitions

    def source_topics(self, settings: TopicSettings) -> list[Topic]:
        """Return the source topic and its dead-letter topic."""
        return topics_with_options(self.source_topic, self.topic, settings)

    def changelog(self, name: str, settings: TopicSettings) -> Topic:
        """Return a version's changelog topic, with the given name."""
        return changelog(name, self.partitions(settings), self.topic.replication_factor)

    @cached_property
    def event_schemas(self) -> tuple[RecordSchema, ...]:
        """The reader's schema of each event type, in the order of `event_types`.

        On a re-keyed topic, no field of an event is the key of its record.
        """
        schemas = tuple(event_schema(name, self.schema_folders) for name in self.event_types)
        if self.rekeyed_from is None:
            return schemas
        # The derived route has checked the lifetime with the times of the original records.
        return tuple(replace(schema, key_field=None, lifetime=None) for schema in schemas)

    @property
    def events(self) -> TopicEvents:
        """What it reads from the source topic."""
        # The records of a re-keyed topic have the key of the read model, others that of the entity.
        record_key = None if self.rekeyed_from is None else self.key
        return TopicEvents(self.source_topic, self.event_schemas, record_key)

    @cached_property
    def lifetime(self) -> ItemLifetime | None:
        """The lifetime of its items; None if they do not end. Raises ReadModelError when its event types do not declare the same one."""
        return None if self.ended is None else shared_lifetime(self.name, self.event_schemas)

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise SchemaError if an event type has no valid schema, ReadModelError if they lack the lifetime of its items, or an expression is not valid."""
        loaded = replace(self, schema_folders=folders)
        _ = loaded.lifetime
        known = KnownColumns.of_events(loaded.event_schemas)
        known.require(f"Key of read model {self.name}", self.key)
        if self.ended is not None:
            known.require(f"`ended` of read model {self.name}", self.ended)
        for revision, fold in self.folds.items():
            names = [field.name for field in self.state_fields(revision)]
            known.require_fields(f"Fold {revision} of read model {self.name}", fold, names)
            if revision in self.merges:
                of_records = KnownColumns.of_fields([*names, *(field.name for field in POSITION_FIELDS)])
                of_records.require_fields(
                    f"Merge {revision} of read model {self.name}", self.merges[revision], names
                )
            require_distinct_names(loaded.state_schema_of(revision), f"The state of read model {self.name}")

    def merge(self, revision: int) -> Fields | None:
        """Return the merge of a fold revision, declared or derived; None if it has none."""
        if revision in self.merges or self.items_leave:
            return self.merges.get(revision)
        fold = self.folds[revision]
        types = {field.name: field.avro_type for field in self.state_fields(revision)}
        return derived_merge(fold, types) if isinstance(fold, Mapping) else None

    @property
    def items_leave(self) -> bool:
        """Whether keys leave the read model, because their items end or expire."""
        return self.ended is not None or self.expires is not None

    @property
    def state_schema(self) -> RecordSchema:
        """Avro schema of the newest revision's state record."""
        return self.state_schema_of(self.newest_fold_revision)

    def state_fields(self, revision: int) -> tuple[StateField, ...]:
        """Return the fields that a revision's fold produces."""
        return tuple(field for field in self.state if field.since <= revision)

    def state_schema_of(self, revision: int) -> RecordSchema:
        """Return the Avro schema of a revision's state record: its state fields, then the position's."""
        record_name = "".join(part.capitalize() for part in self.name.split("-"))
        record = {
            "type": "record",
            "name": record_name,
            "namespace": "foldlake.state",
            "doc": f"State record of the read model {self.name}.",
            "fields": [
                {"name": field.name, "type": field.avro_type, "doc": field.doc}
                for field in (*self.state_fields(revision), *POSITION_FIELDS)
            ],
        }
        return RecordSchema.parse(json.dumps(record), f"state schema of {self.name}")


def require_own_names(read_model: str, names: Iterable[str]) -> None:
    """Raise ReadModelError if a field of a read model's state has the name of another field, of the key or of the position.

    Spark, Delta and DuckDB compare names without regard to case.
    """
    own = (KEY_COLUMN, *POSITION_COLUMNS)
    taken = {name: name for name in own}
    for name in names:
        before = taken.get(name.casefold())
        if before in own:
            raise ReadModelError(
                f"Read model {read_model} declares the state field {name}, but every state record has {before}, and case makes no "
                "difference: rename the field."
            )
        if before is not None:
            raise ReadModelError(
                f"Read model {read_model} declares the state fields {before} and {name}, but case makes no difference: rename one of them."
            )
        taken[name.casefold()] = name
