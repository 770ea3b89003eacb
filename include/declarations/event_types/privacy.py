"""The privacy class of each field of an event, from the property `foldlake.privacy` of its schema, and the rule that routes keep it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from include.declarations.event_types.event_columns import KEY, VALUE, resolved, type_column
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

PROPERTY = "foldlake.privacy"


class Privacy(StrEnum):
    """PUBLIC: the default. PERSONAL: about a person. PSEUDONYM: the keyed hash of a personal value, in the output of a route."""

    PUBLIC = "public"
    PERSONAL = "personal"
    PSEUDONYM = "pseudonym"


def field_classes(schema: RecordSchema) -> dict[str, Privacy]:
    """Return the class of each top-level field; raises ReadModelError for an unknown class."""
    return {name: path_class(schema, [name]) for name in schema.fields}


def path_class(schema: RecordSchema, path: Iterable[str]) -> Privacy:
    """Return the class of a field inside a schema, such as ["address", "city"]; that of the innermost field that declares one.

    A record with a personal field inside is personal as a whole. Raises ReadModelError for an unknown class.
    """
    found = Privacy.PUBLIC
    node: Any = schema.parsed()
    for depth, name in enumerate(path):
        record = _record(node)
        field = next(
            (one for one in record.get("fields", ()) if one["name"].casefold() == name.casefold()), None
        )
        if field is None and depth == 0:
            return found  # of another event type
        if field is None:
            break
        found = _declared(field, schema, found)
        node = field["type"]
    return Privacy.PERSONAL if _has_personal(node, schema, found) else found


def require_privacy(
    writer: str, output: RecordSchema, sources: Iterable[RecordSchema], columns: Mapping[str, Iterable[str]]
) -> None:
    """Raise ReadModelError if a public field of a route's output is made of a personal field of an event.

    columns: output field -> the names of the event columns that it is made of: `<field>`, `<EventType>.<field>` and so on inward.
    """
    schemas = tuple(sources)
    for name, declared in field_classes(output).items():
        if declared is not Privacy.PUBLIC:
            continue
        for column in columns[name]:
            if any(_is_personal(schema, resolved(column, schemas)) for schema in schemas):
                raise ReadModelError(
                    f"{writer} makes the public field {name} of {output.name} of {column}, which is personal: leave it out, or "
                    f"declare {name} as personal or as a pseudonym ({PROPERTY} in {output.name}.avsc)."
                )


def _is_personal(schema: RecordSchema, column: str) -> bool:
    path = column.split(".")
    if path[0].casefold() == type_column(schema.name).casefold():
        return path_class(schema, path[1:]) is Privacy.PERSONAL
    if path == [KEY] and schema.key_field is not None:
        return path_class(schema, [schema.key_field]) is Privacy.PERSONAL
    if path in ([VALUE], [KEY]):
        # The key of a re-keyed topic may be made of any field.
        return Privacy.PERSONAL in field_classes(schema).values()
    return path_class(schema, path) is Privacy.PERSONAL


def _record(node: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return the record in a type: of a nullable one, of an array's items or of a map's values; an empty record if there is none."""
    if isinstance(node, list):
        return next((found for found in map(_record, node) if found), {})
    if not isinstance(node, dict):
        return {}
    if node.get("type") == "record":
        return node
    return _record(
        node.get("items")
        or node.get("values")
        or (node["type"] if isinstance(node.get("type"), dict | list) else None)
    )


def _has_personal(node: Any, schema: RecordSchema, inherited: Privacy) -> bool:  # noqa: ANN401 - JSON of any shape
    fields = _record(node).get("fields", ())
    return any(
        found is Privacy.PERSONAL or _has_personal(field["type"], schema, found)
        for field in fields
        for found in [_declared(field, schema, inherited)]
    )


def _declared(field: Mapping[str, Any], schema: RecordSchema, inherited: Privacy) -> Privacy:
    text = field.get(PROPERTY, inherited.value)
    if text not in set(Privacy):
        raise ReadModelError(
            f"{PROPERTY} of {field['name']} in {schema.name}.avsc is {text!r}; allowed: {', '.join(Privacy)}."
        )
    return Privacy(text)
