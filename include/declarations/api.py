"""The HTTP API of a read model: its named lookups and commands, and where its items are, declared as data."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from include.declarations.command_fields import CommandField, TextField
from include.declarations.event_types.event_schemas import event_schema
from include.declarations.event_types.field_types import without_null
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

# The dot distinguishes these paths from the built-in ones, such as /api/partitions.
PATH_PATTERN = re.compile(r"/api/[a-z][A-Za-z0-9-]*\.[a-z][A-Za-z0-9]*")
PARAMETER_PATTERN = re.compile(r"[a-z][A-Za-z0-9]*")
BOUND_PARAMETER = "minOffset"
DECIMALS_PARAMETER = "decimals"
# Every event has an id, which a command may set, and the time at which it occurred.
ID_FIELD = TextField("id", max_characters=128, optional=True)
TIME_FIELD = "occurredOn"
# The types of a location.
NUMBERS = ("double", "float")


@dataclass(frozen=True)
class LookupJoin:
    """A left join of a lookup's answer with the record that another read model has for the same key, at the time of the answer.

    read_model: name of the other read model. fields: names of fields of its state record, in the response's order; all are null if it
    has no record of the key.
    """

    read_model: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Lookup:
    """A lookup by key with its own path: `GET <path>?<parameter>=<key>` returns a JSON object with some of the state's fields.

    parameter: the query parameter that gives the read model's key. fields: names of fields of the state record, in the response's
    order. max_key_bytes: keys with more bytes of UTF-8 are rejected. example: a key, for the index page. join: fields of another
    read model, after those of this one.
    """

    path: str
    parameter: str
    fields: tuple[str, ...]
    max_key_bytes: int = 256
    example: str = "1"
    join: LookupJoin | None = None

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        check_path(self.path)
        check_parameter(self.path, self.parameter)
        if not self.fields:
            raise ReadModelError(f"The lookup {self.path} returns no fields: list state fields in `fields`.")

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError if it returns a field that the read model does not have."""
        require_fields(self.path, self.fields, model)


@dataclass(frozen=True)
class Command:
    """A command: `POST <path>` with a JSON object appends one event of `event_type` to the topic of the read model's events.

    The event type needs a schema, in `schemas/` of any read model; the read model need not fold it. Each of `fields` sets
    the event's field of that name. Every command may also set the event's `id`; `occurredOn` is the time of the command.
    example: a body, for the index page.
    """

    path: str
    event_type: str
    fields: tuple[CommandField, ...]
    example: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        check_path(self.path)

    @property
    def name(self) -> str:
        """The part of the path after the dot, such as `addFunds`."""
        return self.path.rpartition(".")[2]

    @cached_property
    def body_fields(self) -> dict[str, CommandField]:
        """Every field that a body may have, by name."""
        return {field.name: field for field in (*self.fields, ID_FIELD)}

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise SchemaError if its event has no valid schema, ReadModelError unless every accepted body makes an event with a key."""
        _check_command(self, event_schema(self.event_type, folders))


def check_parameter(path: str, parameter: str) -> None:
    """Raise ReadModelError unless a lookup can have a parameter of this name."""
    if not PARAMETER_PATTERN.fullmatch(parameter) or parameter in {BOUND_PARAMETER, DECIMALS_PARAMETER}:
        raise ReadModelError(
            f"The parameter {parameter!r} of {path} is not valid: use letters and digits in camel case."
        )


def check_path(path: str) -> None:
    """Raise ReadModelError unless a lookup or a command can have this path."""
    if not PATH_PATTERN.fullmatch(path):
        raise ReadModelError(
            f"The path {path!r} is not valid: use /api/<name>.<verb>, such as /api/orders.getTotal."
        )


@dataclass(frozen=True)
class Location:
    """Names of two state fields, in degrees (WGS 84): latitude, -90 to 90, and longitude, -180 to 180.

    Their Avro type is double, float, or a decimal.
    """

    latitude: str
    longitude: str

    def of(self, state: Mapping[str, object]) -> tuple[float, float] | None:
        """Return (latitude, longitude) of a decoded state; None if it lacks one of them."""
        latitude, longitude = state.get(self.latitude), state.get(self.longitude)
        if latitude is None or longitude is None:
            return None
        return float(latitude), float(longitude)  # type: ignore[arg-type]  # `validate_against` has seen their types

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError unless both fields are numbers of the read model's state."""
        types = {field.name: field.avro_type for field in model.state}
        for name in (self.latitude, self.longitude):
            found = without_null(types.get(name))
            if found not in NUMBERS and not (
                isinstance(found, dict) and found.get("logicalType") == "decimal"
            ):
                raise ReadModelError(
                    f"The location of {model.name} is in {name!r}, which is {'no field of its state' if found is None else found}: "
                    f"use state fields of the type {', '.join(NUMBERS)} or decimal."
                )


@dataclass(frozen=True)
class ReadModelApi:
    """A read model with its named lookups and commands.

    schemas: the schema of each command's event type by path. joined: the read models with which lookups are joined, by name.
    location: where its items are; None if it does not say.
    """

    model: ReadModel
    lookups: tuple[Lookup, ...]
    commands: tuple[Command, ...]
    schemas: Mapping[str, RecordSchema] = field(hash=False)
    joined: Mapping[str, ReadModel] = field(default_factory=dict, hash=False)
    location: Location | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of all lookups and commands."""
        return [lookup.path for lookup in self.lookups] + [command.path for command in self.commands]


def require_fields(path: str, fields: Iterable[str], model: ReadModel) -> None:
    """Raise ReadModelError if a lookup with this path returns a field that the read model does not have."""
    unknown = sorted(set(fields) - {state.name for state in (*model.state, *POSITION_FIELDS)})
    if unknown:
        raise ReadModelError(
            f"The lookup {path} returns {', '.join(unknown)}, which {model.name} does not have: use fields of its state."
        )


def _check_command(command: Command, schema: RecordSchema) -> None:
    given = {name for name, one in command.body_fields.items() if one.is_required} | {
        ID_FIELD.name,
        TIME_FIELD,
    }
    needed = {one["name"] for one in schema.parsed()["fields"] if "default" not in one}
    missing = sorted(needed - given)
    if missing:
        raise ReadModelError(
            f"The command {command.path} does not set {', '.join(missing)} of {schema.full_name}: add the fields, or give "
            "them defaults in the schema."
        )
    surplus = sorted((given | command.body_fields.keys()) - set(schema.fields))
    if surplus:
        raise ReadModelError(
            f"{schema.full_name} lacks {', '.join(surplus)}, which the command {command.path} sets: correct the names, or add the fields "
            "to the schema."
        )
    if schema.key_field not in given:
        raise ReadModelError(
            f"The command {command.path} sets no key: name one of its required fields as foldlake.key of {schema.full_name}."
        )
