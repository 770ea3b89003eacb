"""Avro types as trees, with names resolved, as Avro's Java library reads them.

Source: Apache Avro specification 1.12, "Names" and "Aliases".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from include.errors import SchemaError

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})
# Unions that Spark reads as one number.
NUMBERS = ({"int", "long"}, {"float", "double"})


@dataclass(frozen=True)
class AvroField:
    """A field of a record. default: its default as JSON, if `has_default`."""

    name: str
    type: "AvroType"
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@dataclass(eq=False)
class AvroType:
    """A type and the types inside it; a recursive record contains itself.

    kind: `record`, `array`, `union`, or the name of another type. definition: the JSON of this type. name: the full name of a record,
    an enum or a fixed. items: of an array, or the values of a map.
    """

    kind: str
    definition: Any
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    items: "AvroType | None" = None
    branches: tuple["AvroType", ...] = ()

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def is_nullable(self) -> bool:
        """Whether it is a union of null and other types."""
        return any(branch.kind == "null" for branch in self.branches)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Those of an enum."""
        return tuple(self.definition["symbols"])

    @property
    def size(self) -> int:
        """How many bytes a fixed has."""
        return int(self.definition["size"])

    def suffix(self, index: int) -> str:
        """What a branch of a union adds to a path in messages: nothing if it is the only one beside null."""
        if len(self.branches) - self.is_nullable == 1:
            return ""
        branch = self.branches[index]
        return f"|{branch.short_name or branch.kind}"

    @property
    def parts(self) -> Iterator[tuple[str, "AvroType"]]:
        """The types directly inside, each with what it adds to a path in messages, such as `.price` or `[]`."""
        for one in self.fields:
            yield f".{one.name}", one.type
        if self.items is not None:
            yield "[]", self.items
        for index, branch in enumerate(self.branches):
            yield self.suffix(index), branch


@dataclass
class _Parser:
    named: dict[str, AvroType] = field(default_factory=dict)

    def parse(self, definition: Any, namespace: str) -> AvroType:  # noqa: ANN401 - JSON of any shape
        match definition:
            case str():
                return self._reference(definition, namespace)
            case list():
                return AvroType(
                    "union", definition, branches=tuple(self.parse(one, namespace) for one in definition)
                )
            case {"type": ("array" | "map") as kind}:
                inner = definition["items" if kind == "array" else "values"]
                return AvroType(kind, definition, items=self.parse(inner, namespace))
            case {"type": str(kind)} if kind in NAMED:
                return self._named_type(definition, namespace)
            case {"type": str(kind)} if kind in PRIMITIVES:
                return AvroType(kind, definition)
            case {"type": inner}:
                return self.parse(inner, namespace)
        raise SchemaError(f"{definition!r} is not an Avro type: correct the schema.")

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name, name)
        found = self.named.get(_full(name, namespace), self.named.get(name))
        if found is None:
            raise SchemaError(
                f"{name!r} is not an Avro type, nor defined before its use: correct the schema."
            )
        return found

    def _named_type(self, definition: Mapping[str, Any], namespace: str) -> AvroType:
        name = _full(definition["name"], definition.get("namespace", namespace))
        space = name.rpartition(".")[0]
        kind = "record" if definition["type"] == "error" else definition["type"]
        aliases = tuple(_full(alias, space) for alias in definition.get("aliases", ()))
        made = AvroType(kind, definition, name, aliases)
        # Before its fields, which may use it.
        self.named[name] = made
        if kind == "record":
            made.fields = tuple(
                AvroField(
                    one["name"],
                    self.parse(one["type"], space),
                    tuple(one.get("aliases", ())),
                    "default" in one,
                    one.get("default"),
                )
                for one in definition["fields"]
            )
        return made


def avro_type(definition: Any, namespace: str = "") -> AvroType:  # noqa: ANN401 - JSON of any shape
    """Return the tree of a type that is given as JSON, in the namespace of what contains it; raises SchemaError when it is none."""
    try:
        return _Parser().parse(definition, namespace)
    except (KeyError, TypeError, AttributeError) as error:
        raise SchemaError(f"The schema is not valid Avro ({error!r}): correct it.") from error


def is_number(one: AvroType) -> bool:
    """Whether a type is a union of two kinds of numbers, and perhaps null, whose logical types Spark ignores."""
    kinds = [branch.kind for branch in one.branches if branch.kind != "null"]
    return len(kinds) > 1 and set(kinds) in NUMBERS


def without_null(one: AvroType) -> AvroType:
    """Return the other type of a union of null and one other type, and a union without null; any other type unchanged."""
    others = [branch for branch in one.branches if branch.kind != "null"]
    if len(others) == 1:
        return others[0]
    return AvroType("union", one.definition, branches=tuple(others)) if one.is_nullable else one


def as_json(
    one: AvroType, namespace: str, properties: Callable[[AvroType], dict[str, Any]], defined: set[str]
) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a tree as JSON: each named type is written out where it is first used.

    Args:
        one: the type.
        namespace: of what contains it.
        properties: returns the properties that a type has beside those that make it what it is, such as `logicalType`.
        defined: the full names of the types that are written out before this one; those in this one are added.
    """

    def inner(found: AvroType, space: str = namespace) -> Any:  # noqa: ANN401 - as above
        return as_json(found, space, properties, defined)

    if is_number(one):
        return [branch.kind for branch in one.branches]
    if one.kind == "union":
        return [inner(branch) for branch in one.branches]
    if one.items is not None:
        return {"type": one.kind, "items" if one.kind == "array" else "values": inner(one.items)}
    if not one.name:
        added = properties(one)
        return {"type": one.kind} | added if added else one.kind
    space = one.name.rpartition(".")[0]
    if one.name in defined:
        return one.short_name if space == namespace else one.name
    defined.add(one.name)
    kept = {name: one.definition[name] for name in ("symbols", "default", "size") if name in one.definition}
    made = {"type": one.kind, "name": one.short_name} | kept | properties(one)
    if space != namespace:
        made["namespace"] = space
    if one.aliases:
        made["aliases"] = list(one.aliases)
    if one.kind == "record":
        made["fields"] = [
            {"name": field.name, "type": inner(field.type, space)}
            | ({"aliases": list(field.aliases)} if field.aliases else {})
            | ({"default": field.default} if field.has_default else {})
            for field in one.fields
        ]
    return made


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
