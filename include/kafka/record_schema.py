"""Avro record schemas as values: their text, names, fields and key."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import fastavro.schema

from include.errors import SchemaError

KEY_PROPERTY = "foldlake.key"
LIFETIME_PROPERTY = "foldlake.lifetime"
# A year. A longer lifetime would keep the state of almost every item.
MAX_LIFETIME_HOURS = 366 * 24
# By how much the clock that writes an item's creation time may be ahead of the one that writes Kafka's record times.
CREATION_TOLERANCE_HOURS = 1


@dataclass(frozen=True)
class ItemLifetime:
    """For how long events of one item are accepted, from the schema's property `foldlake.lifetime`.

    created: the field with the time at which the item was created; the same in all events of the item.
    hours: an event whose record is written later than this after the item's creation is a dead letter.
    """

    created: str
    hours: int

    @classmethod
    def of(cls, parsed: dict[str, Any], origin: str) -> "ItemLifetime | None":
        """Return the lifetime that a schema declares, if any; raises SchemaError when it is not valid."""
        found = parsed.get(LIFETIME_PROPERTY)
        if found is None:
            return None
        types = {field["name"]: field["type"] for field in parsed["fields"]}
        try:
            lifetime = cls(**found)
            is_time = types[lifetime.created]["logicalType"] in {"timestamp-millis", "timestamp-micros"}
        except (TypeError, KeyError, AttributeError):
            is_time = False
        if not is_time or type(lifetime.hours) is not int or not 1 <= lifetime.hours <= MAX_LIFETIME_HOURS:
            raise SchemaError(
                f'{LIFETIME_PROPERTY} of {origin} is {json.dumps(found)}: give {{"created": a field of type timestamp-millis or -micros, not '
                f'nullable, "hours": a whole number from 1 to {MAX_LIFETIME_HOURS}}}.'
            )
        return lifetime


@dataclass(frozen=True)
class RecordSchema:
    """An Avro record schema: its JSON text, its simple and full name, and its fields' names in order.

    `key_field` is the schema's property `foldlake.key`: the field whose value is also the Kafka record's key, if any.
    `lifetime` is its property `foldlake.lifetime`, if any. `problem`: why no record can be read with this schema of a writer
    (`writer_schema`), if any.
    """

    text: str
    name: str
    full_name: str
    fields: tuple[str, ...]
    key_field: str | None = None
    lifetime: ItemLifetime | None = None
    problem: str | None = None

    @classmethod
    def parse(cls, text: str, origin: str) -> "RecordSchema":
        """Read a record schema from JSON; `origin` names the source of the text in error messages.

        Raises SchemaError when the text is not an Avro record.
        """
        try:
            parsed: Any = json.loads(text)
            name = parsed["name"]
            namespace = parsed.get("namespace", "")
            fields = tuple(field["name"] for field in parsed["fields"])
        except (ValueError, KeyError, TypeError) as error:
            reason = repr(error)
            if isinstance(error, json.JSONDecodeError):
                reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
            message = f"{origin} is not an Avro record schema ({reason}): give the JSON of a record with name and fields."
            raise SchemaError(message) from error
        simple = name.rpartition(".")[2]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        return cls(text, simple, full, fields, parsed.get(KEY_PROPERTY), ItemLifetime.of(parsed, origin))

    def parsed(self) -> dict[str, Any]:
        """Return the schema as the dictionary that fastavro expects."""
        schema: dict[str, Any] = json.loads(self.text)
        return schema

    def renamed_like(self, other: "RecordSchema") -> "RecordSchema":
        """Return this schema with the other's full name, so that Avro can resolve one against the other."""
        namespace = other.full_name.rpartition(".")[0]
        moved = _moved(self.parsed(), self.full_name.rpartition(".")[0], namespace)
        return RecordSchema.parse(
            json.dumps(moved | {"name": other.name, "namespace": namespace}), self.full_name
        )


def _moved(node: Any, old: str, new: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return an Avro type with its names in another namespace where they are in the old one by their full name."""
    if not old or old == new:
        return node
    if isinstance(node, str):
        namespace, _, name = node.rpartition(".")
        return f"{new}.{name}".removeprefix(".") if namespace == old else node
    if isinstance(node, list):
        return [_moved(one, old, new) for one in node]
    changed = dict(node)
    for part in ("type", "items", "values", "name", "aliases"):
        if part in node:
            changed[part] = _moved(node[part], old, new)
    if node.get("namespace") == old:
        changed["namespace"] = new
    if "fields" in node:
        changed["fields"] = [one | {"type": _moved(one["type"], old, new)} for one in node["fields"]]
    return changed


def require_distinct_names(schema: RecordSchema, origin: str) -> None:
    """Raise SchemaError if two fields of one record in the schema, at any depth, differ only by case: Spark and Delta take them for one."""
    found = _same_name(schema.parsed(), schema.name)
    if found is not None:
        record, one, other = found
        raise SchemaError(
            f"{origin} has the fields {one} and {other} in {record}, which differ only by case: rename one of them."
        )


def _same_name(node: Any, record: str) -> tuple[str, str, str] | None:  # noqa: ANN401 - JSON of any shape
    """Return the record of two such fields, and both names."""
    if isinstance(node, list):
        return next((found for one in node if (found := _same_name(one, record)) is not None), None)
    if not isinstance(node, dict):
        return None
    record = node.get("name", record) if "fields" in node else record
    names: dict[str, str] = {}
    for field in node.get("fields", ()):
        before = names.setdefault(field["name"].casefold(), field["name"])
        if before != field["name"]:
            return record, before, field["name"]
        if (found := _same_name(field["type"], record)) is not None:
            return found
    inner = [node[name] for name in ("type", "items", "values") if isinstance(node.get(name), dict | list)]
    return _same_name(inner, record)


def schema_file(path: Path) -> RecordSchema:
    """Return the record schema in a file; raises SchemaError when it cannot be read, or is not valid Avro."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"Schema file {path} cannot be read ({error.strerror}): check the path."
        raise SchemaError(message) from error
    schema = RecordSchema.parse(text, str(path))
    try:
        fastavro.parse_schema(schema.parsed())
    except (fastavro.schema.SchemaParseException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SchemaError(f"{path} is not a valid Avro schema ({error!r}): correct it.") from error
    return schema
