"""Refuses event schemas that not every decoder reads alike, by the field's name, before a query or a rebuild uses them."""

from include.errors import SchemaError
from include.kafka.avro.avro_defaults import encoded_default
from include.kafka.avro.avro_types import AvroField, AvroType, avro_type
from include.kafka.logical_types import MAX_DIGITS, LogicalType
from include.kafka.record_schema import RecordSchema


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
