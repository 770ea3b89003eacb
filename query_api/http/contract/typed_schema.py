"""JSON Schemas of documents, from the data classes that they are made of."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from inspect import getdoc
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from include.nodes.field_names import camel
from query_api.http.contract.json_schema import Schema, nullable, object_schema

SIMPLE: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}
# A class names the properties that its document has beside its fields.
COMPUTED = "COMPUTED"


def typed_schema(annotation: Any) -> Schema:  # noqa: ANN401 - a type, or a form of `typing`
    """Return the schema of a value of this type; names are in camelCase. Raises TypeError for a type that no document has."""
    if annotation in SIMPLE:
        return dict(SIMPLE[annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        # Its JSON type, where that is not the type's.
        return {"type": arguments[1]}
    if origin in {Union, types.UnionType}:
        (found,) = (one for one in arguments if one is not types.NoneType)
        return nullable(typed_schema(found))
    if origin in {list, tuple, Sequence}:
        return {"type": "array", "items": typed_schema(arguments[0])}
    if isinstance(origin or annotation, type):
        return _class_schema(origin or annotation, arguments)
    message = f"{annotation} has no JSON Schema"
    raise TypeError(message)


def _class_schema(kind: type, arguments: tuple[Any, ...]) -> Schema:
    if is_dataclass(kind):
        # What follows the first sentence names fields as the class has them.
        about = " ".join((getdoc(kind) or "").split()).partition(". ")[0].removesuffix(".")
        return {**object_schema(_members(kind)), "description": f"{about}."}
    if issubclass(kind, Enum):
        return {"type": "string", "enum": [str(one.value) for one in kind]}
    if issubclass(kind, Mapping):
        values = arguments or get_args(kind.__orig_bases__[0])  # type: ignore[attr-defined] # as those of each generic class
        return {"type": "object", "additionalProperties": typed_schema(values[1])}
    message = f"{kind} has no JSON Schema"
    raise TypeError(message)


def _members(kind: type) -> dict[str, Schema]:
    hints = get_type_hints(kind, include_extras=True)
    computed = {
        name: get_type_hints(getattr(kind, name).fget)["return"] for name in getattr(kind, COMPUTED, ())
    }
    own = {field.name: hints[field.name] for field in fields(kind)}
    return {camel(name): typed_schema(one) for name, one in (computed | own).items()}


def columns_schema(kind: type) -> Schema:
    """Return the schema of objects of a data class, of which each field is an array."""
    columns = {name: {"type": "array", "items": one} for name, one in _members(kind).items()}
    return object_schema(columns)
