"""Finds the schema of an event type: each read model has the schemas of its events in a folder `schemas/`.

A schema that not every decoder reads alike is refused, by the field's name, before a query or a rebuild uses it.
"""

from collections.abc import Iterable
from pathlib import Path

from include.errors import SchemaError
from include.kafka.avro.avro_defaults import encoded_default
from include.kafka.avro.avro_types import AvroField, AvroType, avro_type
from include.kafka.logical_types import MAX_DIGITS, LogicalType
from include.kafka.record_schema import RecordSchema, require_distinct_names, schema_file

SCHEMA_FOLDER = "schemas"
# Of the checkout. Not resolved, so that it equals the path of a module imported by name.
READ_MODELS = Path(__file__).parent.parent.parent / "read_models"


def schema_files(folders: tuple[Path, ...] = ()) -> list[Path]:
    """Return the schema files of all read models, those in the folders of additional declarations included, sorted.

    These are `**/schemas/*.avsc` and, in these folders, also `*.avsc` beside the modules.
    """
    found = set(READ_MODELS.glob(f"**/{SCHEMA_FOLDER}/*.avsc"))
    for folder in folders:
        found |= {*folder.glob("*.avsc"), *folder.glob(f"**/{SCHEMA_FOLDER}/*.avsc")}
    return sorted(found)


def require_distinct_types(reader: str, event_types: Iterable[str]) -> None:
    """Raise SchemaError if two event types of one reader, which `reader` names, differ only by case: Spark takes them for one."""
    names: dict[str, str] = {}
    for name in event_types:
        before = names.setdefault(name.casefold(), name)
        if before != name:
            raise SchemaError(
                f"Event types {before} and {name} of {reader} differ only by case: rename one of them."
            )


def event_schema(event_type: str, folders: tuple[Path, ...] = ()) -> RecordSchema:
    """Return the schema of an event type: the file `<event_type>.avsc` in the folder of any read model.

    Raises SchemaError when the file does not exist, its record has another name, two such files differ, or it has a field that cannot
    be decoded, or two that differ only by case.
    """
    files = [path for path in schema_files(folders) if path.stem == event_type]
    if not files:
        where = (
            f"a folder {SCHEMA_FOLDER}/ of a read model in {' or '.join(map(str, (READ_MODELS, *folders)))}"
        )
        raise SchemaError(f"There is no schema of event type {event_type}: add {event_type}.avsc to {where}.")
    schema, *others = [schema_file(path) for path in files]
    if any(other.parsed() != schema.parsed() for other in others):
        paths = " and ".join(map(str, files))
        raise SchemaError(
            f"Event type {event_type} has different schemas in {paths}: rename one, or remove it."
        )
    if schema.name != event_type:
        raise SchemaError(f"{files[0]} has a record named {schema.name}: give file and record the same name.")
    require_decodable(schema)
    require_distinct_names(schema, str(files[0]))
    return schema


def require_decodable(schema: RecordSchema) -> None:
    """Raise SchemaError when a field of an event's schema has a type or a default that cannot be decoded."""
    _check(avro_type(schema.parsed()), schema.name, frozenset())


def _check(one: AvroType, path: str, containing: frozenset[str]) -> None:
    if one.name in containing:
        raise SchemaError(
            f"{path} is a {one.name} inside a {one.name}: Spark has no recursive types. Give it another type, such as bytes or a text."
        )
    logical = LogicalType.of(one.definition)
    if logical is not None and logical.precision > MAX_DIGITS:
        raise SchemaError(
            f"{path} is {logical}: a decimal has at most {MAX_DIGITS} digits. Give it a smaller precision."
        )
    kinds = [branch.name or branch.kind for branch in one.branches]
    if one.kind == "union" and ("union" in kinds or len(set(kinds)) < len(kinds) or set(kinds) <= {"null"}):
        raise SchemaError(
            f"{path} is a union of {', '.join(kinds) or 'nothing'}: give it each type once, and one beside null."
        )
    inside = containing | {one.name} if one.kind == "record" else containing
    for declared in one.fields:
        _check_default(declared, f"{path}.{declared.name}")
    for suffix, part in one.parts:
        _check(part, path + suffix, inside)


def _check_default(declared: AvroField, path: str) -> None:
    if not declared.has_default:
        return
    try:
        encoded_default(declared.type, declared.default)
    except ValueError as error:
        raise SchemaError(
            f"The default of {path} cannot be used, because {error}: correct it. That of a union is of its first type."
        ) from error
