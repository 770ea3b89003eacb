"""Draws Avro types and fields of any kind, with hypothesis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
    "big-decimal": "bytes",
    "custom-decimal": "long",
    "unheard-of": "string",
}
SYMBOLS = ("A", "B", "C", "D")
DEPTH = 3
Avro = Any
Draw = Callable[..., Any]


@dataclass
class Names:
    """The named types that are defined so far, and a number for the next one."""

    defined: list[str] = field(default_factory=list)
    next_number: int = 0

    def new(self, prefix: str) -> str:
        """Return a name that no other type has."""
        self.next_number += 1
        return f"{prefix}{self.next_number}"


Maker = Callable[[Draw, Names, int], Avro]


def new_field(draw: Draw, name: str, names: Names, depth: int) -> Avro:
    avro_type = _type(draw, names, depth)
    found = {"name": name, "type": avro_type}
    if draw(st.booleans()):
        default = _default(draw, avro_type)
        if default is not NO_DEFAULT:
            found["default"] = default
    return found


def _type(draw: Draw, names: Names, depth: int) -> Avro:
    kinds = ["primitive", "logical", "decimal", "fixed", "enum", "nullable"]
    if depth < DEPTH:
        kinds += ["record", "array", "map", "nullable", "union", "record", "array"]
    if names.defined:
        kinds.append("again")
    return MAKERS[draw(st.sampled_from(kinds))](draw, names, depth)


def _container(kind: str, inner: str) -> Maker:
    return lambda draw, names, depth: {"type": kind, inner: _type(draw, names, depth + 1)}


def _fixed(draw: Draw, names: Names, _depth: int) -> Avro:
    return _named(names, {"type": "fixed", "name": names.new("Fixed"), "size": draw(st.integers(0, 5))})


def _nullable(draw: Draw, names: Names, depth: int) -> Avro:
    other = _type(draw, names, depth + 1)
    both = [other, "null"] if draw(st.booleans()) else ["null", other]
    return other if isinstance(other, list) or other == "null" else both


def _logical(draw: Draw, names: Names, _depth: int) -> Avro:
    name = draw(st.sampled_from((*LOGICAL, "duration", "fixed-uuid", "wrong")))
    if name == "duration":
        return _named(
            names, {"type": "fixed", "name": names.new("Duration"), "size": 12, "logicalType": "duration"}
        )
    if name == "fixed-uuid":
        return _named(names, {"type": "fixed", "name": names.new("Uuid"), "size": 16, "logicalType": "uuid"})
    if name == "wrong":
        return {
            "type": draw(st.sampled_from(("string", "long"))),
            "logicalType": draw(st.sampled_from(("date", "decimal"))),
        }
    return {
        "type": LOGICAL[name],
        "logicalType": name,
        **({"precision": 9, "scale": 2} if "-decimal" in name else {}),
    }


def _decimal(draw: Draw, names: Names, _depth: int) -> Avro:
    precision = draw(st.integers(1, 38))
    logical = {"logicalType": "decimal", "precision": precision, "scale": draw(st.integers(0, precision))}
    if draw(st.booleans()):
        return {"type": "bytes", **logical}
    # Some are too small for their digits.
    size = max(1, (precision * 10 // 3 + 8) // 8 - draw(st.sampled_from((0, 0, 0, 2))))
    return _named(names, {"type": "fixed", "name": names.new("Decimal"), "size": size, **logical})


def _enum(draw: Draw, names: Names, _depth: int) -> Avro:
    symbols = draw(st.permutations(SYMBOLS))[: draw(st.integers(1, 4))]
    found = {"type": "enum", "name": names.new("Enum"), "symbols": symbols}
    return _named(names, found | ({"default": symbols[-1]} if draw(st.booleans()) else {}))


def _record(draw: Draw, names: Names, depth: int) -> Avro:
    fields = [new_field(draw, f"n{number}", names, depth + 1) for number in range(draw(st.integers(0, 3)))]
    return _named(names, {"type": "record", "name": names.new("Part"), "fields": fields})


def _named(names: Names, definition: Avro) -> Avro:
    names.defined.append(definition["name"])
    return definition


def _union(draw: Draw, names: Names, depth: int) -> Avro:
    found: list[Avro] = []
    kinds: set[str] = set()
    for _ in range(draw(st.integers(2, 4))):
        branch = _type(draw, names, depth + 1)
        kind = branch_kind(branch)
        if kind != "union" and kind not in kinds:
            kinds.add(kind)
            found.append(branch)
    return found if kinds - {"null"} else "string"


MAKERS: Mapping[str, Maker] = {
    "primitive": lambda draw, _names, _depth: draw(st.sampled_from(PRIMITIVES)),
    "logical": _logical,
    "decimal": _decimal,
    "fixed": _fixed,
    "enum": _enum,
    "again": lambda draw, names, _depth: draw(st.sampled_from(names.defined)),
    "nullable": _nullable,
    "union": _union,
    "record": _record,
    "array": _container("array", "items"),
    "map": _container("map", "values"),
}


def branch_kind(avro_type: Avro) -> str:
    """Return what a union has at most once: a name, or the kind of a type without one."""
    if isinstance(avro_type, list):
        return "union"
    return str(avro_type.get("name", avro_type["type"])) if isinstance(avro_type, dict) else str(avro_type)


NO_DEFAULT = object()


def _default(draw: Draw, avro_type: Avro) -> Avro:
    if isinstance(avro_type, list):
        return _default(draw, avro_type[0])
    kind = avro_type["type"] if isinstance(avro_type, dict) else avro_type
    number = draw(st.integers(-5, 5))
    simple = {
        "null": None,
        "boolean": number > 0,
        "int": number,
        "long": number,
        "float": number / 2,
        "double": number / 2,
        "bytes": "\u00ff\u0001"[: max(1, number)],
        "string": "ä",
        "array": [],
        "map": {},
    }
    if kind in {"array", "map"} and number > 2:
        inner = _default(draw, avro_type["items" if kind == "array" else "values"])
        if inner is not NO_DEFAULT:
            simple |= {"array": [inner, inner], "map": {"one": inner, "two": inner}}
    if kind == "record":
        found = {one["name"]: _default(draw, one["type"]) for one in avro_type["fields"]}
        return NO_DEFAULT if NO_DEFAULT in found.values() else found
    if kind == "enum":
        return avro_type["symbols"][0]
    return "\u0001" * avro_type["size"] if kind == "fixed" else simple.get(kind, NO_DEFAULT)
