"""Avro types of single fields, taken out of their schema."""

from collections.abc import Iterator
from typing import Any

# A tuple, because the type of a field may be a dictionary, which is not hashable.
NAMED = ("record", "enum", "fixed")
NULL = "null"


def self_contained(avro_type: Any, schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return the type of a field with the definition of each named type where it is first used.

    schema: the record schema of the field, which may define them in an earlier field.
    """
    definitions = {name: one for one in _named(schema) for name in _names(one)}
    return _inlined(avro_type, definitions, set())


def without_null(avro_type: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return the type of a field that may be null as that of one that may not; without documentation."""
    if isinstance(avro_type, list):
        others = [without_null(one) for one in avro_type if one != NULL]
        return others[0] if len(others) == 1 else others
    if isinstance(avro_type, dict):
        return {
            name: without_null(value) if isinstance(value, dict | list) else value
            for name, value in avro_type.items()
            if name not in {"doc", "default"}
        }
    return avro_type


def _named(node: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON of any shape
    if isinstance(node, list):
        for one in node:
            yield from _named(one)
    elif isinstance(node, dict):
        if node.get("type") in NAMED:
            yield node
        for value in node.values():
            yield from _named(value)


def _names(definition: dict[str, Any]) -> set[str]:
    name, namespace = definition["name"], definition.get("namespace", "")
    return {name, name.rpartition(".")[2], f"{namespace}.{name}"}


def _inlined(node: Any, definitions: dict[str, Any], seen: set[str]) -> Any:  # noqa: ANN401 - JSON of any shape
    """Replace the first use of each name that is not in `seen` by its definition."""
    if isinstance(node, str):
        if node not in definitions or definitions[node]["name"] in seen:
            return node
        return _inlined(definitions[node], definitions, seen)
    if isinstance(node, list):
        return [_inlined(one, definitions, seen) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in NAMED:
        seen.add(node["name"])
    inner = {
        name: _inlined(node[name], definitions, seen) for name in ("type", "items", "values") if name in node
    }
    if "fields" in node:
        inner["fields"] = [
            {**one, "type": _inlined(one["type"], definitions, seen)} for one in node["fields"]
        ]
    return {**node, **inner}
