"""Reads the schemas of a topic's writers: any text that a registry holds. A schema that cannot be used says why, and raises nothing."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro
import fastavro.schema

from include.kafka.record_schema import RecordSchema

AVRO = "AVRO"
PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
FULL_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
NAMED = ("record", "error", "enum", "fixed")
MAX_REASON_CHARACTERS = 300

Types = dict[str, dict[str, Any]]


class UnresolvedReferenceError(ValueError):
    """A schema refers to a type that neither it nor its references define."""


def writer_schema(text: str, schema_type: str = AVRO, referenced: Iterable[str] = ()) -> RecordSchema:
    """Return the schema of an id; if its records cannot be read, its `problem` says why. Never raises.

    Its name is empty if it is not a record: nothing says then which event type its records have. The properties `foldlake.*` are
    the reader's.

    Args:
        text: the schema as it was registered.
        schema_type: the registry's `schemaType`.
        referenced: the texts of the schemas to which it refers, directly or through others. Their types are written out at first use.
    """
    if schema_type != AVRO:
        return unusable(text, f"the schema is {schema_type}, not {AVRO}")
    found: RecordSchema | None = None
    try:
        found = _record(json.loads(text), text)
        if referenced := list(referenced):
            text = json.dumps(_resolved(json.loads(text), referenced))
        fastavro.parse_schema(json.loads(text))
        _require_valid(json.loads(text))
    except Exception as error:  # noqa: BLE001 - a foreign schema can raise anything; it concerns the records with its id only
        return unusable(text, _reason(error), found)
    return RecordSchema(text, found.name, found.full_name, found.fields)


def unusable(text: str, problem: str, known: RecordSchema | None = None) -> RecordSchema:
    """Return a schema with which no record can be read. known: its names, as far as they could be read."""
    if known is None:
        return RecordSchema(text, "", "", (), problem=problem)
    return RecordSchema(text, known.name, known.full_name, known.fields, problem=problem)


def _record(parsed: Any, text: str) -> RecordSchema:  # noqa: ANN401 - JSON of any shape
    kind = parsed.get("type") if isinstance(parsed, dict) else parsed
    if kind not in ("record", "error"):
        raise ValueError(f"the schema is {_named(kind)}, not a record")
    full = _full_name(parsed, "")
    fields = tuple(str(declared["name"]) for declared in parsed["fields"])
    return RecordSchema(text, full.rpartition(".")[2], full, fields)


def _require_valid(avro_type: Any) -> None:  # noqa: ANN401 - JSON of any shape
    """Raise ValueError for what fastavro accepts, and Avro's own parser refuses: the executors could not read the schema."""
    if isinstance(avro_type, list):
        _require_valid_union(avro_type)
    elif isinstance(avro_type, dict):
        kind = avro_type["type"]
        if kind in NAMED:
            _require_name(avro_type["name"])
        if kind == "fixed" and not avro_type["size"] >= 0:
            raise ValueError(f"the fixed type {avro_type['name']} has {avro_type['size']} bytes")
        if kind in ("array", "map"):
            _require_valid(avro_type["items" if kind == "array" else "values"])
        elif kind in ("record", "error"):
            names = [declared["name"] for declared in avro_type["fields"]]
            for name in names:
                _require_name(name)
            for declared in avro_type["fields"]:
                _require_valid(declared["type"])
            if len(set(names)) < len(names):
                raise ValueError(f"the record {avro_type['name']} has two fields of one name")
        else:
            _require_valid(kind)


def _require_name(name: str) -> None:
    if not FULL_NAME.fullmatch(name):
        raise ValueError(f"{name} is not a name in Avro")


def _require_valid_union(branches: list[Any]) -> None:
    kinds = []
    for branch in branches:
        _require_valid(branch)
        named, kind = branch, branch
        while isinstance(kind, dict):
            named, kind = kind, kind["type"]
        if isinstance(kind, list):
            raise ValueError("a union is directly in a union")  # noqa: TRY004 - the reason of one schema
        kinds.append(named["name"] if kind in NAMED else kind)
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"a union has two branches of one type: {', '.join(kinds)}")


def _named(kind: Any) -> str:  # noqa: ANN401 - JSON of any shape
    return "a union" if isinstance(kind, list) else f"of type {json.dumps(kind)}"


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"the schema is not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
    if type(error) in (ValueError, UnresolvedReferenceError):
        return str(error)
    return f"the schema is not valid Avro ({error!r})"[:MAX_REASON_CHARACTERS]


def _resolved(parsed: Any, referenced: Iterable[str]) -> Any:  # noqa: ANN401 - JSON of any shape
    types: Types = {}
    for text in referenced:
        _collect(json.loads(text), "", types)
    return _written_out(parsed, "", types, set())


def _full_name(named: Mapping[str, Any], namespace: str) -> str:
    name = named["name"]
    if not isinstance(name, str):
        raise ValueError(f"the name {json.dumps(name)} is not a text")  # noqa: TRY004 - the reason of one schema
    return _qualified(name, named.get("namespace", namespace))


def _qualified(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _collect(avro_type: Any, namespace: str, types: Types) -> None:  # noqa: ANN401 - JSON of any shape
    """Add the named types that a schema defines, each with its whole namespace."""
    if isinstance(avro_type, list):
        for branch in avro_type:
            _collect(branch, namespace, types)
    elif isinstance(avro_type, dict):
        kind = avro_type["type"]
        if kind in ("array", "map"):
            _collect(avro_type["items" if kind == "array" else "values"], namespace, types)
        elif isinstance(kind, dict | list):
            _collect(kind, namespace, types)
        elif kind in NAMED:
            full = _full_name(avro_type, namespace)
            own, _, name = full.rpartition(".")
            types[full] = avro_type | {"name": name, "namespace": own}
            for declared in avro_type.get("fields", ()):
                _collect(declared["type"], own, types)


def _written_out(avro_type: Any, namespace: str, types: Types, seen: set[str]) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a schema with the types of its references written out where they are first used."""
    if isinstance(avro_type, list):
        return [_written_out(branch, namespace, types, seen) for branch in avro_type]
    if isinstance(avro_type, str):
        return _used(avro_type, namespace, types, seen)
    kind = avro_type["type"]
    if kind in ("array", "map"):
        items = "items" if kind == "array" else "values"
        return avro_type | {items: _written_out(avro_type[items], namespace, types, seen)}
    if kind not in NAMED:
        return avro_type | {"type": _written_out(kind, namespace, types, seen)}
    full = _full_name(avro_type, namespace)
    if full in seen and full in types:
        return full
    seen.add(full)
    own = full.rpartition(".")[0]
    fields = [
        declared | {"type": _written_out(declared["type"], own, types, seen)}
        for declared in avro_type.get("fields", ())
    ]
    return avro_type | {"fields": fields} if "fields" in avro_type else avro_type


def _used(name: str, namespace: str, types: Types, seen: set[str]) -> Any:  # noqa: ANN401 - JSON of any shape
    if name in PRIMITIVES:
        return name
    # A name without a namespace is one of the enclosing namespace, or of none.
    for full in (_qualified(name, namespace), name):
        if full in seen:
            return full
        if full in types:
            return _written_out(types[full], "", types, seen)
    raise UnresolvedReferenceError(f"the type {name} is neither in the schema nor in its references")
