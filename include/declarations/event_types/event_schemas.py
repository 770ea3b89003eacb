"""Finds the schema of an event type: each read model has the schemas of its events in a folder `schemas/`."""

from collections.abc import Iterable
from pathlib import Path

from include.declarations.event_types.decodable import require_decodable
from include.errors import SchemaError
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
