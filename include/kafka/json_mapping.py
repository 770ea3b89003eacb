"""How JSON objects become events: the property `foldlake.json` of an event type's schema and of its fields.

Of the schema, it is the condition that an object must satisfy to be of the type, as an object of top-level names and texts:
`{"logger_name": "product-views"}`. Of a field, it is the top-level name that the object has for it, if that is another one: `"@timestamp"`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.errors import SchemaError
from include.kafka.record_schema import RecordSchema

PROPERTY = "foldlake.json"
PLAIN_TYPES = frozenset({"string", "boolean", "int", "long", "float", "double"})
# Ten digits fewer than Spark's longest decimal: with them it is seen that a value has too many.
LONGEST_DECIMAL = 28
TIMES = frozenset({"timestamp-millis", "timestamp-micros"})


@dataclass(frozen=True)
class JsonField:
    """One field of an event: its name, that of the object's member, its Avro type without null, and whether it may be null."""

    name: str
    member: str
    avro_type: Any
    is_nullable: bool

    @property
    def logical_type(self) -> str:
        """The logical type that the member is converted to; empty for a type that JSON has."""
        return str(self.avro_type.get("logicalType", "")) if isinstance(self.avro_type, dict) else ""

    @property
    def plain_type(self) -> str:
        """The JSON type of a field that has neither a logical type nor items."""
        return _plain_type(self.avro_type)

    @property
    def item_type(self) -> str | None:
        """The JSON type of an array's items; None for a field that is no array."""
        others = self._item_types - {"null"}
        return next(iter(others)) if others else None

    @property
    def has_nullable_items(self) -> bool:
        """Whether an array's items may be null."""
        return "null" in self._item_types

    @property
    def _item_types(self) -> frozenset[str]:
        """The types of an array's items; none for a field that is no array, and for items that no JSON value is converted to."""
        if not isinstance(self.avro_type, dict) or self.avro_type.get("type") != "array":
            return frozenset()
        items = self.avro_type.get("items")
        types = items if isinstance(items, list) else [items]
        found = frozenset(_plain_type(one) for one in types)
        return found if len(found - {"null"}) == 1 and found <= PLAIN_TYPES | {"null"} else frozenset()

    @property
    def precision(self) -> int:
        """The digits of a decimal."""
        return int(self.avro_type["precision"])

    @property
    def scale(self) -> int:
        """The digits of a decimal after the point."""
        return int(self.avro_type.get("scale", 0))


@dataclass(frozen=True)
class JsonMapping:
    """The condition of an event type, and its fields in order."""

    condition: Mapping[str, str]
    fields: tuple[JsonField, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the members that the condition and the fields read."""
        return (*self.condition, *(field.member for field in self.fields))

    @classmethod
    def of(cls, schema: RecordSchema) -> "JsonMapping":
        """Read the mapping of an event type.

        Raises SchemaError for a condition that is not of texts, two fields of one member, a name with an apostrophe, and a type
        that a member is not converted to.
        """
        parsed = schema.parsed()
        condition = parsed.get(PROPERTY, {})
        if not isinstance(condition, dict) or not all(isinstance(text, str) for text in condition.values()):
            raise SchemaError(
                f"{PROPERTY} of {schema.full_name} is {condition!r}: give an object of member names and texts, such as "
                '{"logger_name": "product-views"}.'
            )
        fields = tuple(_field(schema, field) for field in parsed["fields"])
        quoted = [name for name in (*condition, *(field.member for field in fields)) if "'" in name]
        if quoted:
            raise SchemaError(
                f"{PROPERTY} of {schema.full_name} names {quoted[0]!r}: a name must not contain an apostrophe."
            )
        doubled = [name for name, count in Counter(field.member for field in fields).items() if count > 1]
        if doubled:
            raise SchemaError(
                f"Two fields of {schema.full_name} are read from {doubled[0]!r}: name another member."
            )
        return cls(condition, fields)


def _field(schema: RecordSchema, declared: Mapping[str, Any]) -> JsonField:
    types = declared["type"] if isinstance(declared["type"], list) else [declared["type"]]
    others = [one for one in types if one != "null"]
    found = JsonField(declared["name"], declared.get(PROPERTY, declared["name"]), others[0], "null" in types)
    if len(others) == 1 and _is_supported(found):
        return found
    raise SchemaError(
        f"Field {found.name} of {schema.full_name} has the type {declared['type']}, to which no JSON value is converted. Use a string, a "
        f"boolean, a number, a decimal of at most {LONGEST_DECIMAL} digits, a timestamp, or an array of strings, booleans and numbers."
    )


def _plain_type(avro_type: Any) -> str:  # noqa: ANN401 - an Avro type is JSON of any shape
    """Return the name of a type that JSON has; empty for another."""
    is_annotated = isinstance(avro_type, dict) and "logicalType" not in avro_type
    name = avro_type["type"] if is_annotated else avro_type
    return name if isinstance(name, str) else ""


def _is_supported(field: JsonField) -> bool:
    if field.logical_type == "decimal":
        return field.precision <= LONGEST_DECIMAL
    if field.logical_type:
        return field.logical_type in TIMES
    return field.item_type is not None or field.plain_type in PLAIN_TYPES
