"""Finds the schema of an event type: each read model has the schemas of its events in a folder `schemas/`."""

from pathlib import Path

from include.declarations.modules import READ_MODELS
from include.errors import SchemaError
from include.kafka.record_schema import RecordSchema, schema_file

SCHEMA_FOLDER = "schemas"


def schema_files(extra_directory: Path | None = None) -> list[Path]:
    """Return the schema files of all read models, those in the folder of additional read models included, sorted.

    These are `**/schemas/*.avsc` and, in the folder of additional read models, also `*.avsc` beside the modules.
    """
    found = set(READ_MODELS.glob(f"**/{SCHEMA_FOLDER}/*.avsc"))
    if extra_directory is not None:
        found |= {*extra_directory.glob("*.avsc"), *extra_directory.glob(f"**/{SCHEMA_FOLDER}/*.avsc")}
    return sorted(found)


def event_schema(event_type: str, extra_directory: Path | None = None) -> RecordSchema:
    """Return the schema of an event type: the file `<event_type>.avsc` in the folder of any read model.

    Raises SchemaError when the file does not exist, its record has another name, or two such files differ.
    """
    files = [path for path in schema_files(extra_directory) if path.stem == event_type]
    if not files:
        where = f"a folder {SCHEMA_FOLDER}/ of a read model in {READ_MODELS}"
        where += f" or {extra_directory}" if extra_directory else ""
        raise SchemaError(f"There is no schema of event type {event_type}: add {event_type}.avsc to {where}.")
    schema, *others = [schema_file(path) for path in files]
    if any(other.parsed() != schema.parsed() for other in others):
        paths = " and ".join(map(str, files))
        raise SchemaError(
            f"Event type {event_type} has different schemas in {paths}: rename one, or remove it."
        )
    if schema.name != event_type:
        raise SchemaError(f"{files[0]} has a record named {schema.name}: give file and record the same name.")
    return schema
